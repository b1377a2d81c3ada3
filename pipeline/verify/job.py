"""`sluicegate-spark verify`: the same records, in the same order, but for declared repairs.

First each partition is compared with the one of the same number by fingerprints of its blocks, which moves next to
nothing between executors. Only when those differ are records compared one by one, by key and place within the key.
"""

from dataclasses import replace
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from pipeline.results import Results
from pipeline.topics import Topics
from pipeline.verify.records import comparable, content_hash
from validation.units import Unit

_BLOCK_BITS = 16
_SAMPLES = 20
_OTHER_SEED = 1


def verify(spark: SparkSession, source: Topics, target: str, results: Results) -> dict[str, Any]:
    """Compare a topic with `target`; write the table `differences` where they differ, and return the summary."""
    results.forget_summary()
    theirs = comparable(spark, source)
    ours = comparable(spark, replace(source, names=(target,)))
    left, right = _fingerprints(theirs), _fingerprints(ours)
    summary: dict[str, Any] = {
        "job": "verify",
        "source": source.names[0],
        "target": target,
        "records": {"source": sum(b["records"] for b in left), "target": sum(b["records"] for b in right)},
        "repairs": {},
        "differences": dict.fromkeys(("missing", "added", "out of order", "repaired wrongly"), 0),
        "samples": [],
    }
    for block in right:
        for kind, count in block["repairs"].items():
            summary["repairs"][kind] = summary["repairs"].get(kind, 0) + count
        summary["differences"]["repaired wrongly"] += block["wrong"]
    if _by_place(left) != _by_place(right):
        found = results.write_table("differences", _differences(theirs, ours))
        for row in found.groupBy("what").count().collect():
            summary["differences"][row.what] += row["count"]
        rows = found.orderBy("what", "source_partition", "source_offset").limit(_SAMPLES).collect()
        summary["samples"] = [row.asDict() for row in rows]
    summary["same"] = not any(summary["differences"].values())
    return summary


def _fingerprints(rows: DataFrame) -> list[dict[str, Any]]:
    """Of each block of 65,536 records of a partition: what they hash to, in their order, and what was repaired."""
    hashed = rows.select(
        "partition",
        f.shiftright("ordinal", _BLOCK_BITS).alias("block"),
        content_hash(f.col("ordinal")).alias("one"),
        content_hash(f.col("ordinal"), f.lit(_OTHER_SEED)).alias("other"),
        "repair",
        _repaired_wrongly().alias("wrong"),
    )
    blocks = hashed.groupBy("partition", "block", "repair").agg(
        f.count("*").alias("records"),
        f.bit_xor("one").alias("one"),
        f.bit_xor("other").alias("other"),
        f.count_if("wrong").alias("wrong"),
    )
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for row in blocks.collect():
        block = found.setdefault(
            (row.partition, row.block),
            {"place": (row.partition, row.block), "records": 0, "one": 0, "other": 0, "wrong": 0, "repairs": {}},
        )
        block["records"] += row.records
        block["one"] ^= row.one
        block["other"] ^= row.other
        block["wrong"] += row.wrong
        if row.repair is not None:
            block["repairs"][row.repair] = row.records
    return list(found.values())


def _by_place(blocks: list[dict[str, Any]]) -> dict[tuple[int, int], tuple[int, int, int]]:
    return {block["place"]: (block["records"], block["one"], block["other"]) for block in blocks}


def _repaired_wrongly() -> Column:
    """A repair that says a unit must be that unit's conversion."""
    meant = (
        f.when(f.col("repair") == Unit.SECONDS.value, f.col("original") * 1000)
        .when(f.col("repair") == Unit.MICROSECONDS.value, f.expr("original div 1000"))
        .when(f.col("repair") == Unit.NANOSECONDS.value, f.expr("original div 1000000"))
    )
    return f.coalesce(meant != f.col("timestamp"), f.lit(False))


def _differences(theirs: DataFrame, ours: DataFrame) -> DataFrame:
    """Record by record: those that one topic holds more often than the other, and of the rest those whose place among
    the records of their key is another.
    """
    both = _told_apart(theirs, "source").join(
        _told_apart(ours, "target"), ["keyless", "key_hash", "held", "copy"], "full_outer"
    )
    alone = f.when(f.col("target_offset").isNull(), "missing").when(f.col("source_offset").isNull(), "added")
    marked = both.withColumn("alone", alone)
    of_key = Window.partitionBy("key_hash", "keyless", f.col("alone").isNull())
    placed = marked.select(
        "*",
        f.row_number().over(of_key.orderBy("source_partition", "source_offset")).alias("source_place"),
        f.row_number().over(of_key.orderBy("target_partition", "target_offset")).alias("target_place"),
    )
    moved = ~f.col("keyless") & (f.col("source_place") != f.col("target_place"))
    what = f.coalesce(f.col("alone"), f.when(moved, "out of order"))
    return placed.select(
        what.alias("what"), "source_partition", "source_offset", "target_partition", "target_offset"
    ).where(f.col("what").isNotNull())


def _told_apart(rows: DataFrame, side: str) -> DataFrame:
    """Records that hold the same are numbered, so that each finds one other."""
    held = rows.select(
        f.col("key").isNull().alias("keyless"),
        f.xxhash64("key").alias("key_hash"),
        content_hash().alias("held"),
        f.col("partition").alias(f"{side}_partition"),
        f.col("offset").alias(f"{side}_offset"),
    )
    alike = Window.partitionBy("keyless", "key_hash", "held").orderBy(f"{side}_partition", f"{side}_offset")
    return held.withColumn("copy", f.row_number().over(alike))
