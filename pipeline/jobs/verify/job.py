"""Runs `sluicegate-spark verify`: checks that two topics contain the same records in the same order.

Declared repairs may differ. First, each partition is compared with the partition of the same number by the fingerprints
of their blocks, which moves almost no data between executors. Only if the fingerprints differ are records compared one
by one, by key and position within the key.
"""

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from sluicegate.pipeline.jobs.repair.job import PLAN
from sluicegate.pipeline.jobs.repair.plan import RepairPlan, plan_from
from sluicegate.pipeline.jobs.verify import report
from sluicegate.pipeline.jobs.verify.records import (
    are_writable,
    content_hash,
    records_before_repair,
    records_of,
    unchanged_records,
    without_copied_declarations,
)
from sluicegate.pipeline.jobs.verify.repairs import (
    deviations_from_plan,
    is_plausible_time,
    is_timeless,
    out_of_bounds,
    unit_is_wrong,
    wrongly_converted,
)
from sluicegate.pipeline.report.console import ConsoleTable
from sluicegate.pipeline.report.notebook import NotebookResult
from sluicegate.pipeline.report.wording import Conclusion
from sluicegate.pipeline.runs.errors import PipelineError
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics

DIFFERENCES = "differences"
_BLOCK_BITS = 16
_SAMPLES = 20
_PLACES = ("source_partition", "source_offset", "target_partition", "target_offset")
_OTHER_SEED = 1
_WRONGLY = "repaired wrongly"
_COUNTS = ("records", "wrong", "declared")
_SMALLEST, _LARGEST = {"earliest": "known", "least": "estimated"}, {"latest": "known", "most": "estimated"}


class PlanMismatch(PipelineError):
    """Raised if the folder contains no plan, or a plan about other topics. The message names the folder."""


def plan_in(results: Results, source: str, target: str) -> RepairPlan:
    """Return the repair plan in this folder. Raises PlanMismatch."""
    if not results.has(PLAN):
        raise PlanMismatch(f"{results.path(PLAN)} does not exist: set --plan to the --out of the repair")
    plan = plan_from(results.read_text(PLAN))
    if plan.targets.get(source) != target:
        held = ", ".join(f"{source} to {to}" for source, to in plan.targets.items())
        raise PlanMismatch(f"the plan in {results.path(PLAN)} is for {held}")
    return plan


def verify(
    spark: SparkSession, source: Topics, target: str, results: Results, now_ms: int, plan: RepairPlan | None = None
) -> dict[str, Any]:
    """Compare a topic with `target`, write the table `differences` if they differ, and return the summary.

    With a plan, only the records in the plan are compared, and declared repairs are checked against the plan.
    """
    results.forget_summary()
    source = replace(
        source, skip_unreadable=source.skip_unreadable or (plan is not None and plan.rules.skip_unreadable)
    )
    clean = replace(source, names=(target,))
    planned = None if plan is None else [p.source for p in plan.partitions if p.source.of.topic == source.names[0]]
    first = records_of(spark, source, source.ranges() if planned is None else planned, source.names[0])
    second = records_of(spark, clean, clean.ranges(), source.names[0])
    if plan is not None and plan.rules.skip_unwritable:
        first = first.where(are_writable())
    theirs = unchanged_records(first)
    left = _fingerprints(theirs, now_ms)
    if any(block["declared"] for block in left):
        second = without_copied_declarations(second, first)
    ours = records_before_repair(second)
    right = _fingerprints(ours, now_ms)
    summary: dict[str, Any] = {
        "job": "verify",
        "source": source.names[0],
        "target": target,
        "records": {"source": sum(b["records"] for b in left), "target": sum(b["records"] for b in right)},
        "repairs": {},
        "differences": dict.fromkeys(("missing", "added", "out of order", _WRONGLY), 0),
        "samples": [],
    }
    for block in right:
        for kind, count in block["repairs"].items():
            summary["repairs"][kind] = summary["repairs"].get(kind, 0) + count
    wrong = _wrong_repairs(ours, right, now_ms) if plan is None else deviations_from_plan(ours, plan, source.names[0])
    found = [] if wrong is None else [_repaired_wrongly(wrong)]
    if _by_place(left) != _by_place(right):
        found.append(_differences(theirs, ours))
    if found:
        table = results.write_table(DIFFERENCES, reduce(DataFrame.union, found))
        for row in table.groupBy("what").count().collect():
            summary["differences"][row.what] += row["count"]
        rows = table.orderBy("what", *_PLACES).limit(_SAMPLES).collect()
        summary["samples"] = [row.asDict() for row in rows]
    summary["same"] = not any(summary["differences"].values())
    if summary["same"]:
        results.remove(DIFFERENCES)
    return summary


def _fingerprints(rows: DataFrame, now_ms: int) -> list[dict[str, Any]]:
    """Return fingerprints for each block of 65,536 records in a partition.

    A fingerprint consists of order-dependent hashes of the block's contents, its repairs, the number of records with a
    repair's headers (`declared`), and the range of known times (`earliest`, `latest`) and of estimates (`least`,
    `most`).
    """
    hashed = rows.select(
        "partition",
        f.shiftright("ordinal", _BLOCK_BITS).alias("block"),
        content_hash(f.col("ordinal")).alias("one"),
        content_hash(f.col("ordinal"), f.lit(_OTHER_SEED)).alias("other"),
        "repair",
        unit_is_wrong().alias("wrong"),
        f.when(is_plausible_time(now_ms), f.col("timestamp")).alias("known"),
        f.when(is_timeless(), f.col("timestamp")).alias("estimated"),
        "declared",
    )
    blocks = hashed.groupBy("partition", "block", "repair").agg(
        f.count("*").alias("records"),
        f.bit_xor("one").alias("one"),
        f.bit_xor("other").alias("other"),
        f.count_if("wrong").alias("wrong"),
        f.count_if("declared").alias("declared"),
        *(f.min(column).alias(name) for name, column in _SMALLEST.items()),
        *(f.max(column).alias(name) for name, column in _LARGEST.items()),
    )
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for row in blocks.collect():
        block = found.setdefault(
            (row.partition, row.block),
            {"place": (row.partition, row.block), "one": 0, "other": 0, "repairs": {}}
            | dict.fromkeys(_COUNTS, 0)
            | dict.fromkeys((*_SMALLEST, *_LARGEST)),
        )
        block["one"] ^= row.one
        block["other"] ^= row.other
        for count in _COUNTS:
            block[count] += row[count]
        for names, choose in ((_SMALLEST, min), (_LARGEST, max)):
            for name in names:
                block[name] = choose((t for t in (block[name], row[name]) if t is not None), default=None)
        if row.repair is not None:
            block["repairs"][row.repair] = row.records
    return list(found.values())


def _by_place(blocks: list[dict[str, Any]]) -> dict[tuple[int, int], tuple[int, int, int]]:
    return {block["place"]: (block["records"], block["one"], block["other"]) for block in blocks}


def _differences(theirs: DataFrame, ours: DataFrame) -> DataFrame:
    """Compare the topics record by record.

    Returns the records that occur more often in one topic, and the records whose position among the records with the
    same key differs.
    """
    both = _numbered(theirs, "source").join(
        _numbered(ours, "target"), ["keyless", "key_hash", "held", "copy"], "full_outer"
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


def _wrong_repairs(ours: DataFrame, blocks: list[dict[str, Any]], now_ms: int) -> DataFrame | None:
    """Return the repairs that are wrong under any plan; None if there are none."""
    outside = out_of_bounds(ours, blocks, now_ms)
    if not any(block["wrong"] for block in blocks):
        return outside
    converted = wrongly_converted(ours)
    return converted if outside is None else converted.union(outside)


def _repaired_wrongly(wrong: DataFrame) -> DataFrame:
    """Return wrong repairs with the columns of `_differences`."""
    return wrong.select(
        f.lit(_WRONGLY).alias("what"),
        f.col("origin_partition").alias("source_partition"),
        f.col("origin_offset").alias("source_offset"),
        f.col("partition").alias("target_partition"),
        f.col("offset").alias("target_offset"),
    )


def _numbered(rows: DataFrame, side: str) -> DataFrame:
    """Number records with equal contents, so that each matches exactly one other record."""
    held = rows.select(
        f.col("key").isNull().alias("keyless"),
        f.xxhash64("key").alias("key_hash"),
        content_hash().alias("held"),
        f.col("partition").alias(f"{side}_partition"),
        f.col("offset").alias(f"{side}_offset"),
    )
    alike = Window.partitionBy("keyless", "key_hash", "held").orderBy(f"{side}_partition", f"{side}_offset")
    return held.withColumn("copy", f.row_number().over(alike))


@dataclass(frozen=True, slots=True, repr=False)
class Verification(NotebookResult):
    """The results of a comparison.

    `is_same` is whether both topics contain the same records, ignoring declared repairs. `summary` is the content of
    summary.json. `differences` are by partition and offset of either topic; None if there are none. `warnings` contains
    a sentence for each omission.
    """

    is_same: bool
    summary: dict[str, Any]
    differences: DataFrame | None
    warnings: tuple[str, ...] = ()

    def conclusion(self) -> Conclusion:
        """Return the conclusion (see `NotebookResult`)."""
        return report.conclusion(self.summary)

    def table(self) -> ConsoleTable:
        """Return the table (see `NotebookResult`)."""
        return report.console_table(self.summary)


def run_verify(
    spark: SparkSession, source: Topics, target: str, results: Results, now_ms: int, plan: RepairPlan | None
) -> Verification:
    """Compare the topics and write all results."""
    results.forget_summary()
    results.remove(DIFFERENCES)  # written by an earlier run
    summary = verify(spark, source, target, results, now_ms, plan)
    report.write_report(results, summary, now_ms)
    results.write_summary(summary)
    differences = results.read_table(DIFFERENCES) if results.has(DIFFERENCES) else None
    return Verification(summary["same"], summary, differences)
