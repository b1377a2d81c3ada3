"""Reads a topic's newest records with the proxy's own login, with limits on time and records."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from sluicegate.config.upstream import Upstream
from sluicegate.proxy.state.topic_description import TopicUnavailable, connected

_Answer = TypeVar("_Answer")
SECONDS = 5.0
_POLL_SECONDS = 0.1
READER: dict[str, str | int | bool] = {
    # librdkafka requires a group, although partitions are assigned and nothing is committed
    "group.id": "sluicegate-state",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "allow.auto.create.topics": False,
    # No proxy writes in a transaction. Another writer's open transaction would hide all later records for 15 min or
    # more.
    "isolation.level": "read_uncommitted",
}
"""The settings of every consumer of the shared state's topics."""
_FROM_THE_FIRST = {"auto.offset.reset": "earliest", "queued.max.messages.kbytes": 8 << 10}


@dataclass(frozen=True, slots=True)
class TimedValue:
    """A record's value and time (Unix time, ms). `is_broker_time` is true if the broker set the time."""

    value: bytes | None
    time_ms: int
    is_broker_time: bool


def read_newest(upstream: Upstream, topic: str, most: int) -> tuple[TimedValue, ...]:
    """Return each partition's `most` newest records, in the partition's order.

    The result is shorter if reading takes more than 5 s. Raises TopicUnavailable.
    """
    with consumer_of(upstream, topic) as (consumer, partitions):
        for each in partitions:
            first, end = asked(partial(consumer.get_watermark_offsets, each, timeout=SECONDS))
            each.offset = max(first, end - most)
        consumer.assign(partitions)
        return _consumed(consumer, topic, {each.partition for each in partitions}, most)


def asked(question: Callable[[], _Answer]) -> _Answer:
    """Return the cluster's response to a query.

    When librdkafka has connections to the brokers themselves, it drops the bootstrap connection, together with a query
    that waits there (`_DESTROY_BROKER`). The query is then repeated once. Raises KafkaException.
    """
    import confluent_kafka  # noqa: PLC0415  # the extra `topic`

    try:
        return question()
    except confluent_kafka.KafkaException as error:
        if error.args[0].code() != confluent_kafka.KafkaError._DESTROY_BROKER:
            raise
        return question()


def stops_reading(error: Any) -> bool:
    """Return whether a consumer's error prevents reading.

    The consumer commits nothing, so errors about its group do not.
    """
    import confluent_kafka  # noqa: PLC0415  # the extra `topic`

    return bool(error.code() != confluent_kafka.KafkaError.GROUP_AUTHORIZATION_FAILED)


@contextmanager
def consumer_of(upstream: Upstream, topic: str) -> Iterator[tuple[Any, list[Any]]]:
    """Yield a consumer and the partitions of the topic. Raises TopicUnavailable."""
    import confluent_kafka  # noqa: PLC0415  # the extra `topic`

    consumer = connected(upstream, lambda settings: confluent_kafka.Consumer(settings | READER | _FROM_THE_FIRST))
    try:
        known = asked(partial(consumer.list_topics, topic, timeout=SECONDS)).topics[topic]
        if known.error is not None:
            is_missing = known.error.code() == confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART
            raise TopicUnavailable(f"{topic}: {known.error.str()}", is_missing)
        yield consumer, [confluent_kafka.TopicPartition(topic, each) for each in known.partitions]
    except confluent_kafka.KafkaException as error:
        raise TopicUnavailable(f"{topic}: {error.args[0].str()}") from None
    finally:
        with suppress(Exception):  # the important error is already being raised
            consumer.close()


def _consumed(consumer: Any, topic: str, left: set[int], most: int) -> tuple[TimedValue, ...]:
    """Read to the end of the partitions in `left`. Raises TopicUnavailable."""
    import confluent_kafka  # noqa: PLC0415  # the extra `topic`

    deadline = monotonic() + SECONDS
    records: deque[TimedValue] = deque(maxlen=most)
    while left and monotonic() < deadline:
        message = consumer.poll(_POLL_SECONDS)
        if message is None:
            continue
        error = message.error()
        if error is None:
            kind, time_ms = message.timestamp()
            by_broker = kind == confluent_kafka.TIMESTAMP_LOG_APPEND_TIME
            records.append(TimedValue(message.value(), time_ms, by_broker))
        elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
            left.discard(message.partition())
        elif stops_reading(error):
            raise TopicUnavailable(f"{topic}: {error.str()}")
    return tuple(records)
