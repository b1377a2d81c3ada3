"""The events' columns, from JSON lines in files or in a topic (docs/violations.md, version 1)."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline.topics import Topics

_SAMPLE = "index: int, timestamp: bigint, reason: string, earliest: bigint, latest: bigint, diagnosis: string"
_EVENT = (
    "version int, time string, client_id string, software_name string, software_version string, principal string, "
    "peer string, topic string, topic_id string, partition int, mode string, code int, error string, reason string, "
    f"message string, records int, bad_records int, samples array<struct<{_SAMPLE}>>"
)


def from_files(spark: SparkSession, path: str, files_a_batch: int) -> DataFrame:
    """A stream over the lines of files in a folder, or that a glob names; a file must have come whole."""
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", files_a_batch).load(path)
    return _events(lines.select(f.col("value").alias("line")))


def from_topic(spark: SparkSession, topics: Topics, offsets_a_batch: int) -> DataFrame:
    """A stream over the values of topics."""
    records = (
        spark.readStream.format("sluicegate")
        .options(**topics.options, columns="value", startingOffsets="earliest", maxOffsetsPerTrigger=offsets_a_batch)
        .load()
    )
    return _events(records.select(f.col("value").cast("string").alias("line")))


def _events(lines: DataFrame) -> DataFrame:
    """Columns of an event, `time` as a timestamp, and `line` where it is no event of version 1.

    Events of batches that were forwarded all the same (modes observe, fix, rehearse) are left out: what is counted here
    was rejected.
    """
    parsed = lines.select("line", f.from_json("line", _EVENT).alias("event"))
    moment = f.try_to_timestamp("event.time")
    known = (f.col("event.version") == 1) & moment.isNotNull() & f.col("event.partition").isNotNull()
    is_event = f.coalesce(known, f.lit(False))
    was_rejected = f.coalesce(f.col("event.mode"), f.lit("reject")).isin("reject", "quarantine")
    events = parsed.where(was_rejected).select(
        "event.*", moment.alias("at"), f.when(~is_event, f.col("line")).alias("line")
    )
    return events.drop("time", "mode")
