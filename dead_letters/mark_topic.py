"""Creates and reads the compacted topic that contains the marks."""

from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from sluicegate.dead_letters.cluster import SECONDS, Cluster, ClusterUnavailable, Range, ranges_of
from sluicegate.dead_letters.marks import Marks, mark_of
from sluicegate.dead_letters.reading import read_records

DEFAULT_MARKS = "sluicegate-dead-letter-marks"
_AS_THE_CLUSTER_SAYS = -1


def topic_id_of(cluster: Cluster, topic: str) -> str:
    """Return the id of a topic. A topic that is deleted and created again gets a new id. Raises ClusterUnavailable."""
    admin = _admin(cluster)  # keeps the client alive: its futures are lost if it is deleted
    future = admin.describe_topics(TopicCollection([topic]), request_timeout=SECONDS)[topic]
    return str(_result(future, topic).topic_id)


def create_marks(cluster: Cluster, name: str) -> None:
    """Create the marks topic unless it exists. Raises ClusterUnavailable."""
    if name in cluster.topics():
        return
    new = NewTopic(name, 1, _AS_THE_CLUSTER_SAYS, config={"cleanup.policy": "compact"})
    admin = _admin(cluster)
    _result(admin.create_topics([new], operation_timeout=SECONDS, request_timeout=SECONDS)[name], name)


def read_marks(cluster: Cluster, name: str, topic: str, topic_id: str) -> Marks:
    """Return the marks for a dead-letter topic.

    First waits until open transactions end, because committed marks may follow their records. Then reads the marks
    topic to its end. Raises ClusterUnavailable.
    """
    marks = Marks(topic_id)
    if name not in cluster.topics():
        return marks
    ranges = _all_ranges(cluster, name)
    consumer = cluster.consumer()
    try:
        for record in read_records(consumer, name, ranges):
            mark = mark_of(record.value)
            if mark is not None and mark.topic == topic:
                marks.add(mark)
    finally:
        consumer.close()
    return marks


def _all_ranges(cluster: Cluster, name: str) -> list[Range]:
    """Return the topic's offset ranges, including those of open transactions."""
    consumer = Consumer({**cluster.consumer_settings(), "isolation.level": "read_uncommitted"})
    try:
        return ranges_of(consumer, name, 1)
    finally:
        consumer.close()


def _admin(cluster: Cluster) -> AdminClient:
    return AdminClient(dict(cluster.settings))


def _result(future: Any, topic: str) -> Any:
    try:
        return future.result(SECONDS)
    except KafkaException as error:
        raise ClusterUnavailable(f"{topic}: {error.args[0].str()}") from error
