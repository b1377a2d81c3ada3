"""The topics that dead letters were to go to, and what brokers hold these to."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from sluicegate.pipeline.jobs.audit.job import cluster_settings
from sluicegate.pipeline.jobs.repair.record_writer import CannotWrite
from sluicegate.pipeline.jobs.repair.settings import SECONDS
from sluicegate.pipeline.jobs.replay.deciding import Left
from sluicegate.pipeline.jobs.replay.letters import Letters
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.source.tasks import over
from sluicegate.pipeline.topics import Topics
from sluicegate.validation.cluster_settings import ClusterSettings

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
