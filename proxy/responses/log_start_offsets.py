"""The log start offsets of partitions whose batches were rejected, remembered for a moment.

A broker is asked for them (`sluicegate.protocol.log_start_request`), but once a second for each partition, however
many bad batches there are.
"""

from sluicegate.protocol.produce_response import TopicKey
from sluicegate.protocol.topic_name import MAX_CHARACTERS

_LIFETIME_MS = 1000
_MAX_REMEMBERED = 10_000


class LogStarts:
    """Shared by all connections. Times are the proxy's, in ms."""

    def __init__(self) -> None:
        self._seen: dict[tuple[TopicKey, int], tuple[int, int]] = {}

    def learn(self, topic: TopicKey, partition: int, offset: int, now_ms: int) -> None:
        """A broker just told a partition's log start offset; the one told longest ago gives up its place.

        No broker has a topic with a longer name: what is told of one is nothing to remember.
        """
        if len(topic) > MAX_CHARACTERS:
            return
        self._seen.pop((topic, partition), None)
        self._seen[topic, partition] = (offset, now_ms)
        if len(self._seen) > _MAX_REMEMBERED:
            del self._seen[next(iter(self._seen))]

    def of(self, topic: TopicKey, partition: int, now_ms: int) -> int | None:
        """The log start offset, if it was seen within the last second."""
        offset, seen_ms = self._seen.get((topic, partition), (0, -_LIFETIME_MS))
        return offset if 0 <= now_ms - seen_ms < _LIFETIME_MS else None
