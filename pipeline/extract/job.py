"""`sluicegate-spark extract`: records with event time as Parquet, and which were skipped."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pipeline.extract.event_time import EVENT_TIME, extracted
from pipeline.extract.extractors import TimestampExtractor
from pipeline.results import Results
from pipeline.topics import Topics

RECORDS, SKIPPED, CHECKPOINT = "records", "skipped", "checkpoint"


def run(
    spark: SparkSession, topics: Topics, results: Results, extractor: TimestampExtractor, offsets_a_batch: int
) -> None:
    """Everything that is there; what an earlier run has done is not done again."""
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

    def write(batch: DataFrame, number: int) -> None:
        """Into folders of the batch's own, in place of what a run that was killed has left there."""
        kept = batch.persist()
        skipped = f.col(EVENT_TIME).isNull()
        kept.where(~skipped).write.mode("overwrite").parquet(results.path(f"{RECORDS}/batch={number}"))
        kept.where(skipped).select("topic", "partition", "offset", "timestamp").write.mode("overwrite").parquet(
            results.path(f"{SKIPPED}/batch={number}")
        )
        kept.unpersist()

    query = (
        extracted(records, extractor)
        .writeStream.queryName("sluicegate extract")
        .foreachBatch(write)
        .option("checkpointLocation", results.path(CHECKPOINT))
        .start()
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()


def summary_of(topics: Topics, results: Results) -> dict[str, Any]:
    """Records and skipped records of each topic and partition, over all runs."""
    found: dict[str, Any] = {name: {"records": 0, "skipped": 0, "partitions": {}} for name in topics.names}
    for table, count in ((RECORDS, "records"), (SKIPPED, "skipped")):
        if not results.has(table):
            continue
        for row in results.read_table(table).groupBy("topic", "partition").count().collect():
            topic = found[row.topic]
            topic[count] += row["count"]
            partition = topic["partitions"].setdefault(str(row.partition), {"records": 0, "skipped": 0})
            partition[count] += row["count"]
    return {"job": "extract", "topics": found}
