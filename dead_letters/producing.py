"""Sends records and marks with confluent-kafka's producer, and defines the errors that a record itself causes."""

from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import KafkaError, Producer

from sluicegate.dead_letters.cluster import Cluster
from sluicegate.dead_letters.delivery_reports import serve
from sluicegate.dead_letters.marks import Mark
from sluicegate.dead_letters.plan import PlannedRecord

_QUEUED = 200_000
_LARGEST_BYTES = 100_000_000
REJECTIONS = {
    KafkaError.INVALID_MSG_SIZE: "invalid_message_size",
    KafkaError.INVALID_RECORD: "invalid_record",
    KafkaError.INVALID_TIMESTAMP: "invalid_timestamp",
    KafkaError.MSG_SIZE_TOO_LARGE: "message_too_large",
    KafkaError.POLICY_VIOLATION: "policy_violation",
}
"""Errors that the record causes. All other errors are retried or end the run."""

OnDelivery = Callable[[Any, Any], None]
"""Called with the error or None, and the record, after delivery has succeeded or failed."""


def producer_settings(cluster: Cluster) -> dict[str, Any]:
    """Return the settings of a producer that preserves the order of each partition's records."""
    return {
        **cluster.settings,
        "enable.idempotence": True,
        "acks": "all",
        "compression.type": "lz4",
        "partitioner": "murmur2_random",  # the default partitioner of Java's clients
        "message.max.bytes": _LARGEST_BYTES,  # each topic's own limit applies instead
        "queue.buffering.max.messages": _QUEUED,
        "linger.ms": 20,
    }


def send_record(producer: Producer, record: PlannedRecord, delivered: OnDelivery, failed: Sequence[KafkaError]) -> None:
    """Send a record. While the queue is full, serve delivery reports, which append their errors to `failed`."""
    headers: list[Any] = [(name.decode(), value) for name, value in record.headers]
    source = record.source
    _send(
        producer,
        lambda: producer.produce(
            record.topic,
            source.value,
            source.key,
            record.partition,
            delivered,
            timestamp=record.timestamp,
            headers=headers,
        ),
        failed,
    )


def send_mark(producer: Producer, topic: str, mark: Mark, delivered: OnDelivery, failed: Sequence[KafkaError]) -> None:
    """Send a mark to the marks topic."""
    _send(producer, lambda: producer.produce(topic, mark.value(), mark.key(), 0, delivered), failed)


def _send(producer: Producer, produce: Callable[[], object], failed: Sequence[KafkaError]) -> None:
    while True:
        try:
            produce()
            return
        except BufferError:
            serve(lambda: producer.poll(0.1), failed)
