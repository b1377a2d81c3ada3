"""Reads a topic's records in offset order, in constant memory."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from sluicegate.dead_letters.cluster import ClusterUnavailable, Range
from sluicegate.dead_letters.letter import Headers, StoredRecord

_AT_ONCE = 1000
_WAIT_SECONDS = 1.0
_SILENT_SECONDS = 60.0
UNREADABLE: Headers = ((b"\xff", None),)
"""Stands for the headers of a record with a header name that is not UTF-8. confluent-kafka cannot return these."""


def read_records(consumer: Consumer, topic: str, ranges: Sequence[Range]) -> Iterator[StoredRecord]:
    """Yield the records of the given ranges, each of a different partition. Raises ClusterUnavailable.

    Yields each partition's records in offset order. Compaction and aborted transactions leave gaps.
    """
    ends = {each.partition: each.end for each in ranges if each.start < each.end}
    starts = {each.partition: each.start for each in ranges}
    consumer.assign([TopicPartition(topic, partition, starts[partition]) for partition in ends])
    heard = time.monotonic()
    while ends:
        messages = _consumed(consumer, topic)
        for message in messages:
            partition, offset, error = message.partition(), message.offset(), message.error()
            end = ends.get(partition)
            if end is None:
                continue
            if error is not None:
                if error.code() != KafkaError._PARTITION_EOF:
                    raise ClusterUnavailable(f"{topic}-{partition}: {error.str()}")
            elif offset < end:
                yield _record_of(message, topic, partition, offset)
                offset += 1
            if offset >= end:
                del ends[partition]
                consumer.incremental_unassign([TopicPartition(topic, partition)])
        if messages:
            heard = time.monotonic()
        elif time.monotonic() - heard > _SILENT_SECONDS:
            raise ClusterUnavailable(f"{topic}: no record arrived within {_SILENT_SECONDS:g} s")


def _consumed(consumer: Consumer, topic: str) -> list[Any]:
    """Return the available messages, after waiting for the first.

    `consume` on its own would wait until it has the requested number of messages.
    """
    try:
        first = consumer.poll(_WAIT_SECONDS)
        return [] if first is None else [first, *consumer.consume(_AT_ONCE, 0)]
    except KafkaException as error:
        raise ClusterUnavailable(f"{topic}: {error.args[0].str()}") from error


def _record_of(message: Any, topic: str, partition: int, offset: int) -> StoredRecord:
    try:
        headers: Headers = tuple([(name.encode(), value) for name, value in message.headers() or ()])
    except UnicodeDecodeError:
        headers = UNREADABLE
    return StoredRecord(topic, partition, offset, message.timestamp()[1], message.key(), message.value(), headers)
