"""Sends records and marks with confluent-kafka's producer, and names the errors that blame a record."""

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
"""Errors that blame the record. All others end the run or are retried."""

OnDelivery = Callable[[Any, Any], None]
"""Is called with the error or None, and with the record, when its fate is known."""


def producer_settings(cluster: Cluster) -> dict[str, Any]:
    """Return the settings of a producer that keeps the order of a partition's records."""
    return {
        **cluster.settings,
        "enable.idempotence": True,
        "acks": "all",
        "compression.type": "lz4",
        "partitioner": "murmur2_random",  # that of Java's clients
        "message.max.bytes": _LARGEST_BYTES,  # the topics' own limits apply
        "queue.buffering.max.messages": _QUEUED,
        "linger.ms": 20,
    }


def send_record(producer: Producer, record: PlannedRecord, delivered: OnDelivery, failed: Sequence[KafkaError]) -> None:
    """Send a record. Delivery reports, which are served while the queue is full, add to `failed`."""
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
    """Send a mark to the topic of marks."""
    _send(producer, lambda: producer.produce(topic, mark.value(), mark.key(), 0, delivered), failed)


def _send(producer: Producer, produce: Callable[[], object], failed: Sequence[KafkaError]) -> None:
    while True:
        try:
            produce()
            return
        except BufferError:
            serve(lambda: producer.poll(0.1), failed)
