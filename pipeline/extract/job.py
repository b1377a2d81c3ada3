"""`sluicegate-spark extract`: records with event time as Parquet, and which were skipped."""

import json
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from pipeline.extract.built_in import PARTITION, BuiltIn, Times, with_previous_time
from pipeline.extract.event_time import EVENT_TIME
from pipeline.results import Results
from pipeline.topics import Topics

RECORDS, SKIPPED, CHECKPOINT = "records", "skipped", "checkpoint"
# Keys and values are hardly ever the same, so a dictionary of them is made in vain.
_PARQUET = {f"parquet.enable.dictionary#{column}": "false" for column in ("key", "value")}
_BEGUN = "extract.json"


class OtherExtraction(Exception):
    """The folder holds the records of other topics, or of another extractor; the text says which."""


def run(spark: SparkSession, topics: Topics, results: Results, extractor: BuiltIn, offsets_a_batch: int) -> None:
    """Everything that is there; what an earlier run has done is not done again. Raises OtherExtraction."""
    _begin(topics, results, extractor)
    records = (
        spark.readStream.format("sluicegate")
        .options(
            **topics.options,
            columns="topic,partition,offset,timestamp,timestamp_type,key,value",
            startingOffsets="earliest",
            maxOffsetsPerTrigger=offsets_a_batch,
        )
        .load()
    )
    query = (
        records.writeStream.queryName("sluicegate extract")
        .foreachBatch(lambda batch, number: _write(batch, number, results, extractor))
        .option("checkpointLocation", results.path(CHECKPOINT))
        .start()
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()


def _begin(topics: Topics, results: Results, extractor: BuiltIn) -> None:
    asked = {"topics": sorted(topics.names), "extractor": extractor.name}
    if results.has(_BEGUN):
        begun = json.loads(results.read_text(_BEGUN))
        if begun != asked:
            raise OtherExtraction(
                f"{results.path('')} holds {', '.join(begun['topics'])} by the extractor {begun['extractor']}: go on "
                "with those, or use another --out"
            )
    elif results.has(CHECKPOINT):
        raise OtherExtraction(f"{results.path('')} holds something else already: use another --out")
    results.write_text(_BEGUN, json.dumps(asked, indent=2) + "\n")


def _write(batch: DataFrame, number: int, results: Results, extractor: BuiltIn) -> None:
    """Into folders of the batch's own, in place of what a run that was killed has left there."""
    path, rows, seen = results.path(f"{RECORDS}/batch={number}"), extractor.with_event_time(batch), Observation()
    told = rows.observe(seen, f.count_if(f.col(EVENT_TIME).isNull()).alias("without"))
    kept = told.where(f.col(EVENT_TIME).isNotNull()) if extractor.skips else told
    kept.write.options(**_PARQUET).mode("overwrite").parquet(path)
    without = bool(seen.get["without"])
    if without and extractor.skips:
        left_out = rows.where(f.col(EVENT_TIME).isNull()).select(*PARTITION, "offset", "timestamp")
        left_out.write.mode("overwrite").parquet(results.path(f"{SKIPPED}/batch={number}"))
    if extractor.needs_times:
        before = _times_before(results, number)
        if without:  # which is rare: then the batch is written once more
            with_previous_time(rows, before).write.mode("overwrite").parquet(path)
        _keep_times(batch.sparkSession, results, number, before)


def _times_before(results: Results, number: int) -> dict[tuple[str, int], int]:
    name = _times_name(number - 1)
    found = json.loads(results.read_text(name)) if number > 0 and results.has(name) else []
    return {(topic, partition): at for topic, partition, at in found}


def _keep_times(spark: SparkSession, results: Results, number: int, before: Times) -> None:
    """Of each partition the highest so far, for the next batch."""
    written = spark.read.parquet(results.path(f"{RECORDS}/batch={number}"))
    rows = written.groupBy(*PARTITION).agg(f.max(f.unix_millis(EVENT_TIME)).alias("at")).collect()
    times = dict(before)
    for row in rows:
        place = (row.topic, row.partition)
        times[place] = max(row["at"], times.get(place, row["at"]))
    told = [(topic, partition, at) for (topic, partition), at in sorted(times.items())]
    results.write_text(_times_name(number), json.dumps(told) + "\n")


def _times_name(number: int) -> str:
    return f"times/{number}.json"


def summary_of(topics: Topics, results: Results) -> dict[str, Any]:
    """Records and skipped records of each topic and partition, over all runs."""
    found: dict[str, Any] = {name: {"records": 0, "skipped": 0, "partitions": {}} for name in topics.names}
    for table, count in ((RECORDS, "records"), (SKIPPED, "skipped")):
        if not results.has(table):
            continue
        for row in results.read_table(table).groupBy(*PARTITION).count().collect():
            topic = found[row.topic]
            topic[count] += row["count"]
            partition = topic["partitions"].setdefault(str(row.partition), {"records": 0, "skipped": 0})
            partition[count] += row["count"]
    return {"job": "extract", "topics": found}
