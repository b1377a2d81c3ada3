"""Finds where dead letters are stored, and their destination topics."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from sluicegate.pipeline.jobs.audit.job import cluster_settings
from sluicegate.pipeline.jobs.repair.settings import SECONDS
from sluicegate.pipeline.jobs.replay.decisions import RemainingLetter
from sluicegate.pipeline.jobs.replay.letters import DeadLetterTopic, LetterSource
from sluicegate.pipeline.jobs.replay.listed_records import (
    ListedRecords,
    listed_records_in,
    ranges_of,
    skipped_record_sentences,
)
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.tasks import map_in_tasks
from sluicegate.pipeline.source.topic_ids import check_topic_ids
from sluicegate.pipeline.source.topics import Topics
from sluicegate.pipeline.writing.record_writer import CannotWriteTopic
from sluicegate.validation.cluster_settings import ClusterSettings

DEAD_LETTER, FOUND_RECORD = "dead letter", "listed record"
"""The words for a record in messages."""


@dataclass(frozen=True, slots=True)
class Location:
    """A place that stores dead letters.

    `letters` is the source of the letters, `ranges` are the ranges to read, and `called` is the word for a letter in
    messages. `targets` returns the destination topics of the letters in given ranges. `skipped_record_sentences`
    returns a sentence for each partition with letters before these ranges.
    """

    letters: LetterSource
    ranges: list[OffsetRange]
    called: str
    targets: Callable[[SparkSession, Sequence[OffsetRange]], set[str]]
    skipped_record_sentences: Callable[[Sequence[OffsetRange]], list[str]]


def dead_letter_location(topics: Topics) -> Location:
    """Return the location of all records in dead-letter topics. No letter is written to one of these topics."""
    letters = DeadLetterTopic(topics.options)
    return Location(
        letters,
        topics.ranges(),
        DEAD_LETTER,
        lambda spark, ranges: destinations_named_in(spark, letters, ranges) - set(topics.names),
        lambda _ranges: [],
    )


def listed_record_location(spark: SparkSession, topics: Topics, folder: str) -> Location:
    """Return the location of the records that the folder's audit lists. Each record is written to its own topic.

    Raises NoFindings and TopicRecreated.
    """
    results = Results(spark, folder)
    listed = listed_records_in(results, topics.names)
    check_topic_ids(results, topics, "Audit them again")
    return Location(
        ListedRecords(topics.options, spark.sparkContext.broadcast(listed)),
        ranges_of(listed, topics.ranges()),
        FOUND_RECORD,
        lambda _spark, _ranges: set(topics.names),
        lambda ranges: skipped_record_sentences(listed, ranges),
    )


_DEFAULT_BATCH_BYTES = 1_048_588  # a broker's default, if its settings cannot be read


@dataclass(frozen=True, slots=True)
class DestinationTopics:
    """The existing destination topics: their number of `partitions`, and their `settings` if the login can read them.

    `warnings` contains a sentence for each topic with unreadable settings.
    """

    partitions: Mapping[str, int]
    settings: Mapping[str, ClusterSettings]
    warnings: tuple[str, ...]

    @property
    def batch_bytes(self) -> int:
        """Return the maximum batch size (bytes) that all topics accept."""
        sizes = [its.max_message_bytes for its in self.settings.values() if its.max_message_bytes is not None]
        return min([_DEFAULT_BATCH_BYTES, *sizes])


def destinations_named_in(spark: SparkSession, letters: LetterSource, ranges: Sequence[OffsetRange]) -> set[str]:
    """Return the destination topics of the dead letters in the ranges."""

    def destinations_of_range(wanted: OffsetRange) -> Iterable[pa.RecordBatch]:
        names = {
            found.topic
            for some in letters.within(wanted)
            for _, found in some.records
            if not isinstance(found, RemainingLetter)
        }
        return [pa.RecordBatch.from_pydict({"topic": pa.array(sorted(names), pa.string())})]

    rows = (
        map_in_tasks(spark, ranges, lambda wanted: wanted.size, destinations_of_range, "topic string")
        .distinct()
        .collect()
    )
    return {row.topic for row in rows}


def origins_of(topics: Topics, names: Collection[str]) -> DestinationTopics:
    """Return the existing destination topics among `names`. Raises CannotWriteTopic if topics cannot be listed."""
    try:
        known = AdminClient(topics.for_librdkafka).list_topics(timeout=SECONDS).topics
    except KafkaException as error:
        raise CannotWriteTopic(error.args[0].str()) from error
    there = sorted(known.keys() & set(names))
    settings, warnings = cluster_settings(Topics(topics.bootstrap, tuple(there), topics.settings))
    return DestinationTopics({name: len(known[name].partitions) for name in there}, settings, tuple(warnings))
