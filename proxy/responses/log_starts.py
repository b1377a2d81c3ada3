"""Stores the log start offsets that brokers report, for responses to rejected batches."""

from sluicegate.protocol.produce_response import TopicKey
from sluicegate.protocol.topic_name import MAX_CHARACTERS

_LOG_START_MS = 1000
_MAX_LOG_STARTS = 10_000


class LogStarts:
    """The log start offsets of partitions whose batches were rejected, each stored for a second.

    All connections share them, so a broker is asked at most once a second per partition
    (`sluicegate.protocol.log_start_request`). Times are in ms, by the proxy's clock.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[TopicKey, int], tuple[int, int]] = {}

    def learn(self, topic: TopicKey, partition: int, offset: int, now_ms: int) -> None:
        """Store a log start offset from a broker. At the limit, drop the oldest entry.

        Ignore an offset whose topic name is longer than Kafka allows.
        """
        if len(topic) > MAX_CHARACTERS:
            return
        self._known.pop((topic, partition), None)
        self._known[topic, partition] = (offset, now_ms)
        if len(self._known) > _MAX_LOG_STARTS:
            del self._known[next(iter(self._known))]

    def offset_of(self, topic: TopicKey, partition: int, now_ms: int) -> int | None:
        """Return the log start offset if it was learned within the last second. Otherwise return None."""
        offset, learned_ms = self._known.get((topic, partition), (0, -_LOG_START_MS))
        return offset if 0 <= now_ms - learned_ms < _LOG_START_MS else None
