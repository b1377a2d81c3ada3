"""Creates topics for tests: with limits, which the broker validates, or without limits, which the proxy validates."""

import uuid

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tests.broker.eventually import eventually

BEFORE_MAX_MS, AFTER_MAX_MS = 86_400_000, 3_600_000
VALIDATED = {
    "message.timestamp.before.max.ms": str(BEFORE_MAX_MS),
    "message.timestamp.after.max.ms": str(AFTER_MAX_MS),
}
UNVALIDATED = {"message.timestamp.after.max.ms": str(2**63 - 1)}
DEFAULTS = {key: int(value) for key, value in VALIDATED.items()}


def create_topic(
    bootstrap: str, settings: dict[str, str], partitions: int = 3, replicas: int = 1, prefix: str = "t"
) -> str:
    """Create a topic with a unique name."""
    name = f"{prefix}-{uuid.uuid4().hex[:12]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, partitions, replicas, config=settings)]).values():
        future.result(30)
    eventually(lambda: _all_led(admin, name, partitions), what=f"leaders for {name}")
    return name


def _all_led(admin: AdminClient, topic: str, partitions: int) -> bool:
    """Return whether every partition's leader acts as leader and accepts requests."""
    wanted = {TopicPartition(topic, p): OffsetSpec.earliest() for p in range(partitions)}
    try:
        return all(future.result(30).offset == 0 for future in admin.list_offsets(wanted).values())
    except KafkaException:
        return False
