"""Computes timestamp bounds, including rehearsed ones, as a broker does (KIP-937).

Timestamps are int64 ms that wrap like Java's long.
"""

from collections.abc import Iterator
from typing import NamedTuple

from sluicegate.protocol.integers import ALL_64, SIGN_64
from sluicegate.protocol.records.record_batch import NO_TIMESTAMP
from sluicegate.protocol.records.scan import RehearsalCounter
from sluicegate.validation.cluster_settings import AFTER_MAX, BEFORE_MAX
from sluicegate.validation.policy import RehearsedBounds, TimestampType, TopicPolicy
from sluicegate.validation.verdict import Reason

IN_FUTURE_MS = 3_600_000
"""Valid timestamps further ahead than this (ms) are logged. KIP-937 announced a bound of one hour; Kafka 4.0 set it."""


def wrapped_int64(value: int) -> int:
    """Return `value` wrapped into an int64."""
    return ((value + SIGN_64) & ALL_64) - SIGN_64


class TimeWindow:
    """The timestamps that a partition accepts at `now_ms`. All of a partition's records share one `now_ms`."""

    def __init__(self, now_ms: int, before_max_ms: int, after_max_ms: int) -> None:
        self.now_ms = now_ms
        self.before_max_ms = before_max_ms
        self.after_max_ms = after_max_ms

    @property
    def earliest(self) -> int:
        """Return the earliest accepted timestamp (ms), wrapped."""
        return wrapped_int64(self.now_ms - self.before_max_ms)

    @property
    def latest(self) -> int:
        """Return the latest accepted timestamp (ms), wrapped."""
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
        """Return the reason if a timestamp violates a bound; None if it is good, or -1, which means no timestamp."""
        if timestamp == NO_TIMESTAMP:
            return None
        behind = wrapped_int64(self.now_ms - timestamp)
        if behind > self.before_max_ms:
            return Reason.TIMESTAMP_TOO_OLD
        if wrapped_int64(-behind) > self.after_max_ms:
            return Reason.TIMESTAMP_IN_FUTURE
        return None


def window_of(policy: TopicPolicy, now_ms: int) -> TimeWindow | None:
    """Return a topic's window at `now_ms`, or None if the broker sets timestamps."""
    if policy.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return None
    return TimeWindow(now_ms, policy.before_max_ms, policy.after_max_ms)


class RehearsedBound(NamedTuple):
    """A Kafka setting, and a rehearsed bound for it (ms)."""

    key: str
    max_ms: int

    @property
    def label(self) -> str:
        """Return the bound's label in metrics."""
        return f"{self.key}={self.max_ms}"


def rehearsal_of(policy: TopicPolicy) -> RehearsalCounter | None:
    """Return the counter for one batch, or None if the policy rehearses nothing."""
    rehearsed = policy.rehearsed
    if rehearsed is None:
        return None
    return RehearsalCounter(policy.before_max_ms, policy.after_max_ms, rehearsed.before_max_ms, rehearsed.after_max_ms)


def bounds_of(rehearsed: RehearsedBounds) -> Iterator[RehearsedBound]:
    """Yield the rehearsed bounds in the order in which a RehearsalCounter counts them."""
    for bound in rehearsed.before_max_ms:
        yield RehearsedBound(BEFORE_MAX, bound)
    for bound in rehearsed.after_max_ms:
        yield RehearsedBound(AFTER_MAX, bound)
