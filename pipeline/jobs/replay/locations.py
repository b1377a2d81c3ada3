"""Where that lies which a replay takes back: dead letters in topics of their own, or what a validation has listed."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from sluicegate.pipeline.jobs.audit.job import cluster_settings
from sluicegate.pipeline.jobs.repair.record_writers import CannotWrite
from sluicegate.pipeline.jobs.repair.settings import SECONDS
from sluicegate.pipeline.jobs.replay.decisions import Left
from sluicegate.pipeline.jobs.replay.letters import KeptLetters, Letters
from sluicegate.pipeline.jobs.replay.listed_records import FoundLetters, listed_in, passed_over, ranges_of
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.results import Results
from sluicegate.pipeline.source.tasks import over
from sluicegate.pipeline.topics import Topics
from sluicegate.validation.cluster_settings import ClusterSettings

DEAD_LETTER, FOUND_RECORD = "dead letter", "listed record"
"""What one is called."""


@dataclass(frozen=True, slots=True)
class Lying:
    """`letters` within `ranges`, each `called` so. `targets`: the topics that those go to which lie in some ranges.
    `passed_over`: a sentence for each partition where some lie before these ranges.
    """

    letters: Letters
    ranges: list[OffsetRange]
    called: str
    targets: Callable[[SparkSession, Sequence[OffsetRange]], set[str]]
    passed_over: Callable[[Sequence[OffsetRange]], list[str]]


def lying_kept(topics: Topics) -> Lying:
    """All that dead-letter topics hold. None goes to one of these."""
    letters = KeptLetters(topics.options)
    return Lying(
        letters,
        topics.ranges(),
        DEAD_LETTER,
        lambda spark, ranges: named_in(spark, letters, ranges) - set(topics.names),
        lambda _ranges: [],
    )


def lying_found(spark: SparkSession, topics: Topics, folder: str) -> Lying:
    """What a validation in the folder lists of the topics, which each goes back to. Raises NoFindings."""
    listed = listed_in(Results(spark, folder), topics.names)
    return Lying(
        FoundLetters(topics.options, spark.sparkContext.broadcast(listed)),
        ranges_of(listed, topics.ranges()),
        FOUND_RECORD,
        lambda _spark, _ranges: set(topics.names),
        lambda ranges: passed_over(listed, ranges),
    )


_DEFAULT_BATCH_BYTES = 1_048_588  # a broker's own, where it may not be asked


@dataclass(frozen=True, slots=True)
class Origins:
    """By topic, of those that are there: how many `partitions` it has, and its `settings`, where they may be read.
    `warnings`: a sentence for each whose settings may not.
    """

    partitions: Mapping[str, int]
    settings: Mapping[str, ClusterSettings]
    warnings: tuple[str, ...]

    @property
    def batch_bytes(self) -> int:
        """The largest batch that all of them take."""
        sizes = [its.max_message_bytes for its in self.settings.values() if its.max_message_bytes is not None]
        return min([_DEFAULT_BATCH_BYTES, *sizes])


def named_in(spark: SparkSession, letters: Letters, ranges: Sequence[OffsetRange]) -> set[str]:
    """The topics that dead letters in the ranges were to go to."""

    def of_range(wanted: OffsetRange) -> Iterable[pa.RecordBatch]:
        names = {
            found.topic for some in letters.within(wanted) for _, found in some.records if not isinstance(found, Left)
        }
        return [pa.RecordBatch.from_pydict({"topic": pa.array(sorted(names), pa.string())})]

    rows = over(spark, ranges, lambda wanted: wanted.size, of_range, "topic string").distinct().collect()
    return {row.topic for row in rows}


def origins_of(topics: Topics, names: Collection[str]) -> Origins:
    """Of those of these names that are there. Raises CannotWrite where the cluster does not say which topics it has."""
    try:
        known = AdminClient(topics.for_librdkafka).list_topics(timeout=SECONDS).topics
    except KafkaException as error:
        raise CannotWrite(error.args[0].str()) from error
    there = sorted(known.keys() & set(names))
    settings, warnings = cluster_settings(Topics(topics.bootstrap, tuple(there), topics.settings))
    return Origins({name: len(known[name].partitions) for name in there}, settings, tuple(warnings))
