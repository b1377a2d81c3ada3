"""Reads events from JSON lines in files or in a topic (docs/violations.md)."""

import json

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluicegate.pipeline.runs.results import Results, java_classes
from sluicegate.pipeline.runs.violation_events import event_of_line, is_of_this_version
from sluicegate.pipeline.source.options import Trigger
from sluicegate.pipeline.source.topics import Topics
from sluicegate.validation.outcome import Outcome


def events_from_files(spark: SparkSession, path: str, files_a_batch: int) -> DataFrame:
    """Return a stream of the lines in the files of a folder or glob. The files must be complete."""
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", files_a_batch).load(path)
    return _events(lines.select(f.col("value").alias("line")))


def events_from_topic(spark: SparkSession, topics: Topics, offsets_a_batch: int) -> DataFrame:
    """Return a stream of the topics' values, for a query with an interval as its trigger."""
    records = (
        spark.readStream.format("sluicegate")
        .options(**topics.options, columns="value", startingOffsets="earliest")
        .options(maxOffsetsPerTrigger=offsets_a_batch, trigger=Trigger.PROCESSING_TIME)
        .load()
    )
    return _events(records.select(f.col("value").cast("string").alias("line")))


def _events(lines: DataFrame) -> DataFrame:
    """Return an event's columns, with `time` as a timestamp.

    `line` is set if the line is not an event of this version. Only events of rejected batches are kept.
    """
    parsed = lines.select("line", event_of_line("line").alias("event"))
    moment = f.try_to_timestamp("event.time")
    known = is_of_this_version("event") & moment.isNotNull() & f.col("event.partition").isNotNull()
    is_event = f.coalesce(known, f.lit(False))
    was_rejected = f.coalesce(f.col("event.outcome") == Outcome.REJECTED.value, f.lit(True)) | ~is_event
    events = parsed.where(was_rejected).select(
        "event.*", moment.alias("at"), f.when(~is_event, f.col("line")).alias("line")
    )
    return events.drop("time", "outcome")


_READ = "files.json"


class ReadFiles:
    """Remembers, between runs, the length of each file at its first reading.

    Spark reads a file only once, so it would silently miss lines that are added later.
    """

    def __init__(self, spark: SparkSession, path: str, results: Results) -> None:
        """Read the current lengths. `path` is a folder, a file or a glob, in the forms that Spark accepts."""
        self._path = java_classes(spark).org.apache.hadoop.fs.Path(path)
        self._files = self._path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        self._results = results
        self._read: dict[str, int] = json.loads(results.read_text(_READ)) if results.has(_READ) else {}
        self._read = self._lengths() | self._read

    def grown(self) -> list[str]:
        """Return the files that have grown since they were read. Call this when a run ends."""
        lengths = self._lengths()
        self._read = lengths | self._read
        self._results.write_text(_READ, json.dumps(self._read, indent=2) + "\n")
        return sorted(file for file, length in lengths.items() if length > self._read[file])

    def _lengths(self) -> dict[str, int]:
        found = {}
        for match in self._files.globStatus(self._path) or ():
            within = self._files.listStatus(match.getPath()) if match.isDirectory() else [match]
            found.update({file.getPath().toString(): file.getLen() for file in within if file.isFile()})
        return found
