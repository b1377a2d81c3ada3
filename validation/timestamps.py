"""Computes time bounds as a broker does (KIP-937), in int64 ms that wrap like Java's long, and rehearsed bounds."""

from collections.abc import Iterator
from typing import NamedTuple

from sluicegate.protocol.integers import ALL_64, SIGN_64
from sluicegate.protocol.records.record_batch import NO_TIMESTAMP
from sluicegate.protocol.records.scan import RehearsalCounter
from sluicegate.validation.cluster_settings import AFTER_MAX, BEFORE_MAX
from sluicegate.validation.policy import RehearsedBounds, TimestampType, TopicPolicy
from sluicegate.validation.verdict import Reason

IN_FUTURE_MS = 3_600_000
"""Valid times further ahead than this (ms) are logged. KIP-937 announced one hour as the bound; Kafka 4.0 set it."""


def wrapped_int64(value: int) -> int:
    """Return `value` wrapped into an int64."""
    return ((value + SIGN_64) & ALL_64) - SIGN_64


class TimeWindow:
    """The times that a partition accepts at `now_ms`, which is read once for all records of a partition."""

    def __init__(self, now_ms: int, before_max_ms: int, after_max_ms: int) -> None:
        self.now_ms = now_ms
        self.before_max_ms = before_max_ms
        self.after_max_ms = after_max_ms

    @property
    def earliest(self) -> int:
        """Return the earliest accepted time (ms), wrapped."""
        return wrapped_int64(self.now_ms - self.before_max_ms)

    @property
    def latest(self) -> int:
        """Return the latest accepted time (ms), wrapped."""
        return wrapped_int64(self.now_ms + self.after_max_ms)

    def as_scanned(self, base_timestamp: int) -> tuple[int, int, int, int]:
        """Return the arguments of `scan_records` for a batch: earliest delta, window, exempt delta, overflow."""
        return (
            (self.now_ms - self.before_max_ms - base_timestamp) & ALL_64,
            self.before_max_ms + self.after_max_ms,
            (NO_TIMESTAMP - base_timestamp) & ALL_64,
            (SIGN_64 + self.before_max_ms) & ALL_64,
        )

    def breach(self, timestamp: int) -> Reason | None:
        """Return the reason if a time violates a bound; None for a good time, and for -1, which means no time."""
        if timestamp == NO_TIMESTAMP:
            return None
        behind = wrapped_int64(self.now_ms - timestamp)
        if behind > self.before_max_ms:
            return Reason.TIMESTAMP_TOO_OLD
        if wrapped_int64(-behind) > self.after_max_ms:
            return Reason.TIMESTAMP_IN_FUTURE
        return None


def window_of(policy: TopicPolicy, now_ms: int) -> TimeWindow | None:
    """Return the window of a topic at `now_ms`; None if the broker sets the time itself."""
    if policy.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return None
    return TimeWindow(now_ms, policy.before_max_ms, policy.after_max_ms)


class RehearsedBound(NamedTuple):
    """A Kafka setting and a rehearsed bound for it (ms)."""

    key: str
    max_ms: int

    @property
    def label(self) -> str:
        """Return the bound's label in metrics."""
        return f"{self.key}={self.max_ms}"


def rehearsal_of(policy: TopicPolicy) -> RehearsalCounter | None:
    """Return the counter for one batch; None if the policy rehearses nothing."""
    rehearsed = policy.rehearsed
    if rehearsed is None:
        return None
    return RehearsalCounter(policy.before_max_ms, policy.after_max_ms, rehearsed.before_max_ms, rehearsed.after_max_ms)


def bounds_of(rehearsed: RehearsedBounds) -> Iterator[RehearsedBound]:
    """Yield the rehearsed bounds, in the order of the counts of a RehearsalCounter."""
    for bound in rehearsed.before_max_ms:
        yield RehearsedBound(BEFORE_MAX, bound)
    for bound in rehearsed.after_max_ms:
        yield RehearsedBound(AFTER_MAX, bound)
