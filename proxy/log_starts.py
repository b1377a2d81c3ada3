"""The log start offsets of partitions whose batches were refused, remembered for a moment.

A broker tells the real one when it is asked with a batch that makes it write an error into its own log; so a flood of
bad batches asks once a second for each partition, not once for each batch.
"""

from protocol.produce_response import TopicKey

_LIFETIME_MS = 1000
_MAX_REMEMBERED = 10_000


class LogStarts:
    """Shared by all connections. Times are the proxy's, in ms."""

    def __init__(self) -> None:
        self._seen: dict[tuple[TopicKey, int], tuple[int, int]] = {}

    def learn(self, topic: TopicKey, partition: int, offset: int, now_ms: int) -> None:
        """A broker just told a partition's log start offset."""
        if len(self._seen) >= _MAX_REMEMBERED:
            self._seen.clear()
        self._seen[topic, partition] = (offset, now_ms)

    def of(self, topic: TopicKey, partition: int, now_ms: int) -> int | None:
        """The log start offset, if it was seen within the last second."""
        offset, seen_ms = self._seen.get((topic, partition), (0, -_LIFETIME_MS))
        return offset if 0 <= now_ms - seen_ms < _LIFETIME_MS else None
