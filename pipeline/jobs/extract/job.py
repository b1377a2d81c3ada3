"""Runs `sluicegate-spark extract`: writes records with event time as Parquet, and lists the skipped records."""

import json
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from sluicegate.pipeline.jobs.extract.built_in import BuiltInExtractor
from sluicegate.pipeline.jobs.extract.extractors import TooLate
from sluicegate.pipeline.jobs.extract.parquet_files import (
    COLUMNS,
    DDL,
    ExtractChunk,
    OutputFolder,
    output_folder,
    write_chunk,
)
from sluicegate.pipeline.jobs.extract.progress import ExtractProgress, PartitionProgress, progress_in
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.runs.errors import PipelineError
from sluicegate.pipeline.runs.results import BadFolder, Results
from sluicegate.pipeline.source.losses import log_states
from sluicegate.pipeline.source.options import source_options
from sluicegate.pipeline.source.subscription import Subscription
from sluicegate.pipeline.source.tasks import map_in_tasks
from sluicegate.pipeline.source.topics import Topics

RECORDS, SKIPPED = "records", "skipped"
_BEGUN = "extract.json"


class DifferentExtraction(PipelineError):
    """Raised if the folder contains records of other topics or of another extractor. The message names them."""


class RecordsMissing(PipelineError):
    """Raised if records after those of the last run no longer exist. The message gives topic, partition and offsets."""


def run(
    spark: SparkSession, topics: Topics, results: Results, extractor: BuiltInExtractor, offsets_a_batch: int
) -> None:
    """Process all records that exist now, without repeating the batches of earlier runs.

    Raises DifferentExtraction, BadFolder, and, unless the topics' `skip_missing` is set, RecordsMissing.
    """
    folder = _output_folder(spark, results)
    _begin(topics, results, extractor)
    with topics.cluster() as cluster:
        now = log_states(cluster, Subscription(topics.names), must_exist=True)
    progress, lost = progress_in(results).resumed(now)
    if lost and not topics.skip_missing:
        raise RecordsMissing(
            f"{results.path('')}: {'; '.join(lost)}. Use another --out, or --skip-missing to continue with the records "
            f"that exist and to list the missing ones in summary.json"
        )
    if lost:
        progress.keep(results)
    there = topics.ranges()
    while wanted := progress.next_ranges(there, offsets_a_batch):
        progress = progress.after(_write(spark, topics, results, folder, extractor, progress, wanted))
        progress.keep(results)


def _output_folder(spark: SparkSession, results: Results) -> OutputFolder:
    found = output_folder(results.uri(""), spark.sparkContext._jsc.hadoopConfiguration().get)
    try:
        files, path = found.file_system()
        files.get_file_info(path)
    except (ValueError, OSError, ImportError) as error:
        reason = " ".join(str(error).split())
        raise BadFolder(
            f"{found.uri} cannot be used: tasks write files with Arrow, which reports {reason}. Use a folder that all "
            "executors share, or s3a:// with fs.s3a settings in Spark's configuration (docs/how-to/spark-platforms.md)"
        ) from error
    return found


def _begin(topics: Topics, results: Results, extractor: BuiltInExtractor) -> None:
    kept = {} if extractor.too_late is TooLate.FAIL else {"too_late": extractor.too_late.value}
    arguments = {"topics": sorted(topics.names), "extractor": extractor.name} | kept
    if results.has(_BEGUN):
        begun = json.loads(results.read_text(_BEGUN))
        if begun != arguments and not progress_in(results).is_none:
            late = f" and --too-late {begun['too_late']}" if "too_late" in begun else ""
            raise DifferentExtraction(
                f"{results.path('')} has records of {', '.join(begun['topics'])} by the extractor "
                f"{begun['extractor']}{late}: use the same again, or another --out"
            )
    elif results.has(RECORDS):
        raise DifferentExtraction(f"{results.path('')} contains something else: use another --out")
    results.write_text(_BEGUN, json.dumps(arguments, indent=2) + "\n")


def _write(
    spark: SparkSession,
    topics: Topics,
    results: Results,
    folder: OutputFolder,
    extractor: BuiltInExtractor,
    progress: ExtractProgress,
    wanted: list[OffsetRange],
) -> dict[TopicPartition, PartitionProgress]:
    """Write a batch into its own folders, replacing the files of a killed run."""
    batch = f"batch={progress.number + 1}"
    records, skipped = f"{RECORDS}/{batch}", f"{SKIPPED}/{batch}"
    for left_behind in (records, skipped):
        results.remove(left_behind)
    chunks = [ExtractChunk(each, progress.progress_of(each.of, each.start).highest) for each in wanted]
    options = source_options(topics.options | {"columns": COLUMNS})
    work = partial(write_chunk, options, extractor, folder.within(records), folder.within(skipped))
    rows = map_in_tasks(spark, chunks, lambda chunk: chunk.wanted.size, work, DDL).collect()
    ends = {each.of: each.end for each in wanted}
    places = {TopicPartition(row.topic, row.partition): row for row in rows}
    return {
        p: PartitionProgress(ends[p], row["highest"], row["records"], row["skipped"], row["too_late"])
        for p, row in places.items()
    }


def summary_of(topics: Topics, results: Results) -> dict[str, Any]:
    """Return the numbers of records, of skipped records and of records too late for Spark.

    The numbers are by topic and partition, over all runs.
    """
    found: dict[str, Any] = {
        name: {"records": 0, "skipped": 0, "too_late": 0, "partitions": {}} for name in topics.names
    }
    for partition, reached in progress_in(results).of.items():
        counts = {"records": reached.records, "skipped": reached.skipped, "too_late": reached.too_late}
        topic = found[partition.topic]
        topic["partitions"][str(partition.partition)] = counts
        for name, count in counts.items():
            topic[name] += count
    return {"job": "extract", "topics": found, "missing": list(progress_in(results).missing)}
