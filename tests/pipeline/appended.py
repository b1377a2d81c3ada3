"""Generates timestamps of many kinds, with the time at which each record was appended."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

HOUR, MINUTE = 3_600_000, 60_000
SPAN = 30 * HOUR
BATCH = 20
"""The number of records that are appended at the same time."""


@dataclass(frozen=True, slots=True)
class StampedRecords:
    """The records of a partition: the timestamp and the append time of each (ms)."""

    times: list[int]
    appended: list[int]

    def count_in_future(self, after_max_ms: int) -> int:
        """Return the number of records whose timestamp is more than this (ms) after their append."""
        return sum(time > at + after_max_ms for time, at in zip(self.times, self.appended, strict=True))

    def count_too_old(self, before_max_ms: int) -> int:
        """Return the number of records whose timestamp is more than this (ms) before their append."""
        return sum(time < at - before_max_ms for time, at in zip(self.times, self.appended, strict=True))


def _live(count: int, end_ms: int, span_ms: int = SPAN) -> list[int]:
    """Return append times of batches that are spread evenly over a time span (ms)."""
    return [end_ms - span_ms + span_ms * min(i // BATCH * BATCH + BATCH, count) // count for i in range(count)]


def _constant(at: list[int], _now: int) -> StampedRecords:
    return StampedRecords([at[0]] * len(at), at)


def _repeated(at: list[int], _now: int) -> StampedRecords:
    return StampedRecords([time // (6 * HOUR) * 6 * HOUR for time in at], at)


def _shuffled(at: list[int], _now: int) -> StampedRecords:
    return StampedRecords(Random(1).sample(at, len(at)), at)


def _shuffled_by_a_loader(at: list[int], now: int) -> StampedRecords:
    return StampedRecords(Random(1).sample(at, len(at)), _live(len(at), now, 5 * MINUTE))


def _some_ahead(at: list[int], _now: int) -> StampedRecords:
    return StampedRecords([time + 6 * HOUR if i // BATCH % 10 == 3 else time for i, time in enumerate(at)], at)


def _most_ahead(at: list[int], _now: int) -> StampedRecords:
    return StampedRecords([time + 6 * HOUR if i // BATCH % 10 < 6 else time for i, time in enumerate(at)], at)


def _all_ahead(at: list[int], _now: int) -> StampedRecords:
    return StampedRecords([time + 5 * HOUR for time in at], at)


def _jittered(at: list[int], _now: int) -> StampedRecords:
    random = Random(1)
    return StampedRecords([time + random.randint(-2 * HOUR, 2 * HOUR) for time in at], at)


def _backfilled(at: list[int], now: int) -> StampedRecords:
    third = len(at) // 3
    old = [now - 900 * 24 * HOUR + i * MINUTE for i in range(third)]
    return StampedRecords([*at[:third], *old, *at[2 * third :]], at)


def _mirrored(at: list[int], now: int) -> StampedRecords:
    return StampedRecords(at, _live(len(at), now, 5 * MINUTE))


KINDS: dict[str, Callable[[list[int], int], StampedRecords]] = {
    "valid": lambda at, _now: StampedRecords(at, at),
    "constant": _constant,
    "repeated": _repeated,
    "shuffled": _shuffled,
    "shuffled by a loader": _shuffled_by_a_loader,
    "a tenth ahead": _some_ahead,
    "most ahead": _most_ahead,
    "all ahead": _all_ahead,
    "jittered": _jittered,
    "backfilled": _backfilled,
    "mirrored": _mirrored,
}


def stamped_records(kind: str, count: int, now_ms: int) -> StampedRecords:
    """Return `count` records appended in the thirty hours before now; loaders appended theirs in the last five
    minutes."""
    return KINDS[kind](_live(count, now_ms), now_ms)
