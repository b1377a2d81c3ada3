"""Connects to a cluster with librdkafka, using the credentials of the person who runs the command."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

SECONDS = 30.0
_GROUP = "sluicegate-dead-letters"
_FETCHED_KBYTES = 32_768
_FETCH_WAIT_MS = 20


class ClusterUnavailable(Exception):
    """Raised if the cluster or a topic cannot be read or written. The message gives the reason."""


@dataclass(frozen=True, slots=True)
class Range:
    """A range of offsets in one partition, from `start` (inclusive) to `end` (exclusive)."""

    partition: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster. `settings` are librdkafka's connection settings: `bootstrap.servers`, TLS and SASL."""

    settings: Mapping[str, Any]

    def consumer_settings(self) -> dict[str, Any]:
        """Return settings for a consumer that reads only committed records and commits no offsets."""
        return {
            **self.settings,
            "group.id": _GROUP,  # librdkafka requires it; no offset is committed and no group is joined
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "queued.max.messages.kbytes": _FETCHED_KBYTES,
            "allow.auto.create.topics": False,
            "fetch.wait.max.ms": _FETCH_WAIT_MS,  # when the end of a partition is reported
        }

    def consumer(self) -> Consumer:
        """Return a consumer with `consumer_settings`."""
        return Consumer(self.consumer_settings())

    def topics(self) -> dict[str, int]:
        """Return the number of partitions per topic, for topics that the principal may describe.

        Raises ClusterUnavailable.
        """
        found = self._metadata().topics
        return {name: len(topic.partitions) for name, topic in sorted(found.items()) if topic.error is None}

    def cluster_id(self) -> str:
        """Return the cluster id. Raises ClusterUnavailable."""
        return str(self._metadata().cluster_id)

    def _metadata(self) -> Any:
        consumer = self.consumer()
        try:
            return consumer.list_topics(timeout=SECONDS)
        except KafkaException as error:
            raise ClusterUnavailable(str(error.args[0].str())) from error
        finally:
            consumer.close()


def ranges_of(consumer: Consumer, topic: str, partitions: int) -> list[Range]:
    """Return the offset range of each of a topic's partitions. Raises ClusterUnavailable."""
    found = []
    for partition in range(partitions):
        try:
            start, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), SECONDS)
        except KafkaException as error:
            raise ClusterUnavailable(f"{topic}-{partition}: {error.args[0].str()}") from error
        found.append(Range(partition, start, end))
    return found


def present_ranges(cluster: Cluster, topic: str) -> tuple[Range, ...]:
    """Return the current offset ranges of a topic's non-empty partitions. Raises ClusterUnavailable."""
    partitions = cluster.topics().get(topic)
    if partitions is None:
        raise ClusterUnavailable(f"there is no topic {topic} that this login may read")
    consumer = cluster.consumer()
    try:
        return tuple(each for each in ranges_of(consumer, topic, partitions) if each.start < each.end)
    finally:
        consumer.close()
