"""Makes records for rules."""

from sluicegate.validation.rules.rule import Client, Header, RuledRecord

_CLIENT = Client("127.0.0.1", "orders-app", "librdkafka", "2.6.0", "User:orders")


def record(
    value: bytes | None = None,
    key: bytes | None = None,
    headers: tuple[Header, ...] = (),
    topic: str = "orders",
    timestamp: int = 1_795_000_000_000,
) -> RuledRecord:
    return RuledRecord(topic, 3, 7, timestamp, key, value, headers, _CLIENT)
