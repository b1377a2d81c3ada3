"""Time bounds as a broker computes them (KIP-937): int64 milliseconds that wrap as Java's long does."""

from sluicegate.protocol.integers import ALL_64, SIGN_64
from sluicegate.protocol.records.record_batch import NO_TIMESTAMP
from sluicegate.validation.policy import TimestampType, TopicPolicy
from sluicegate.validation.verdict import Reason


def as_long(value: int) -> int:
    """`value` wrapped into an int64."""
    return ((value + SIGN_64) & ALL_64) - SIGN_64


class TimeWindow:
    """What a partition accepts at one moment; `now_ms` is read once for all records of a partition."""

    def __init__(self, now_ms: int, before_max_ms: int, after_max_ms: int) -> None:
        self.now_ms = now_ms
        self.before_max_ms = before_max_ms
        self.after_max_ms = after_max_ms

    @property
    def earliest(self) -> int:
        """The earliest accepted time (ms), wrapped."""
        return as_long(self.now_ms - self.before_max_ms)

    @property
    def latest(self) -> int:
        """The latest accepted time (ms), wrapped."""
        return as_long(self.now_ms + self.after_max_ms)

    def as_scanned(self, base_timestamp: int) -> tuple[int, int, int, int]:
        """The bounds as `scan_records` takes them for a batch: earliest delta, window, exempt delta, overflow."""
        return (
            (self.now_ms - self.before_max_ms - base_timestamp) & ALL_64,
            self.before_max_ms + self.after_max_ms,
            (NO_TIMESTAMP - base_timestamp) & ALL_64,
            (SIGN_64 + self.before_max_ms) & ALL_64,
        )

    def breach(self, timestamp: int) -> Reason | None:
        """Which bound a time breaks; None for a good one, and for -1, which is no time at all."""
        if timestamp == NO_TIMESTAMP:
            return None
        behind = as_long(self.now_ms - timestamp)
        if behind > self.before_max_ms:
            return Reason.TIMESTAMP_BEFORE
        if as_long(-behind) > self.after_max_ms:
            return Reason.TIMESTAMP_AFTER
        return None


def window_of(policy: TopicPolicy, now_ms: int) -> TimeWindow | None:
    """The window of a topic at `now_ms`; None where the broker sets the time itself."""
    if policy.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return None
    return TimeWindow(now_ms, policy.before_max_ms, policy.after_max_ms)
