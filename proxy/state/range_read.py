"""Reads a topic's records between two times with the proxy's own login, with limits on time and size."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any

from sluicegate.config.upstream import Upstream
from sluicegate.proxy.state.bounded_read import asked, consumer_of, stops_reading
from sluicegate.proxy.state.topic_description import TopicUnavailable

_SECONDS = 8.0  # the admin endpoint ends each request within 10 s
_POLL_SECONDS = 0.1
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class RangeRead:
    """The result of reading a range.

    All records from `complete_since_ms` (Unix time, ms) on were read. It is None if the limit on bytes or time ended
    the read.
    """

    records: int
    complete_since_ms: int | None


def read_range(
    upstream: Upstream, topic: str, times_ms: tuple[int, int], most: int, most_bytes: int, take: Callable[[bytes], None]
) -> RangeRead:
    """Pass `take` the values of the records from the first of `times_ms` until before the second.

    If there are more than `most` records, only the newest are read. Blocks for up to a few seconds. Raises
    TopicUnavailable.
    """
    import confluent_kafka  # noqa: PLC0415  # the extra `topic`

    deadline = monotonic() + _SECONDS
    with consumer_of(upstream, topic) as (consumer, partitions):
        ranges = _offsets(consumer, partitions, times_ms, deadline)
        share = min(1.0, most / max(1, sum(end - first for first, end in ranges.values())))
        starts = {each: end - int((end - first) * share) for each, (first, end) in ranges.items()}
        left = {each for each, (_, end) in ranges.items() if starts[each] < end}
        if not left:
            return RangeRead(0, times_ms[0] if share == 1 else None)
        consumer.assign([confluent_kafka.TopicPartition(topic, each, starts[each]) for each in left])
        since_ms, read, size = times_ms[0], 0, 0
        begun: set[int] = set()
        while left and monotonic() < deadline:
            for message in consumer.consume(_AT_ONCE, _POLL_SECONDS):
                partition, error = message.partition(), message.error()
                if error is not None:
                    if _is_at_end(topic, error):
                        left.discard(partition)
                    continue
                if share < 1 and partition not in begun:  # older records in this partition are not read
                    begun.add(partition)
                    since_ms = max(since_ms, message.timestamp()[1])
                if message.offset() < ranges[partition][1]:
                    value = message.value() or b""
                    read, size = read + 1, size + len(value)
                    take(value)
                if message.offset() + 1 >= ranges[partition][1]:
                    left.discard(partition)
                if left and size >= most_bytes:
                    return RangeRead(read, None)
        return RangeRead(read, None if left else since_ms)


def _offsets(
    consumer: Any, partitions: list[Any], times_ms: tuple[int, int], deadline: float
) -> dict[int, tuple[int, int]]:
    """For each partition with records in the range, return the first offset and the offset after the last."""

    def left() -> float:
        return max(_POLL_SECONDS, deadline - monotonic())

    import confluent_kafka  # noqa: PLC0415  # the extra `topic`

    bounds: list[dict[int, int]] = []
    for time_ms in times_ms:
        times = [confluent_kafka.TopicPartition(each.topic, each.partition, time_ms) for each in partitions]
        offsets = asked(partial(consumer.offsets_for_times, times, timeout=left()))
        bounds.append({each.partition: each.offset for each in offsets})
    found = {}
    for each in partitions:
        _, newest = asked(partial(consumer.get_watermark_offsets, each, timeout=left()))
        first, end = (newest if bound[each.partition] < 0 else bound[each.partition] for bound in bounds)
        if first < end:
            found[each.partition] = (first, end)
    return found


def _is_at_end(topic: str, error: Any) -> bool:
    """Return whether `error` reports the end of a partition. Raises TopicUnavailable."""
    import confluent_kafka  # noqa: PLC0415  # the extra `topic`

    if error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
        return True
    if stops_reading(error):
        raise TopicUnavailable(f"{topic}: {error.str()}")
    return False
