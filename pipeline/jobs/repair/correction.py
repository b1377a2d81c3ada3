"""Computes the correct timestamp of a record with an invalid timestamp.

A number in another unit is converted, unless the result is ahead of both its append and the moment of reading. Zero and
negative times, and times that are ahead for the whole range of their append, are replaced by the estimated append time.
Times that are ahead for only a part of that range may be valid. These times and implausible times are rewritten only if
the user names their kind. Other times stay unchanged.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sluicegate.pipeline.jobs.profile.append_times import AppendTimes, TimestampDoubt, saturating_add
from sluicegate.pipeline.jobs.profile.clock import Clock
from sluicegate.pipeline.jobs.profile.invalid_timestamps import InvalidTimestampKind, UncertainTimestampKind
from sluicegate.pipeline.jobs.profile.kinds import UNITS, TimestampKind, TimestampKinds, in_milliseconds
from sluicegate.pipeline.jobs.repair.settings import Retention

INVALID_TIMESTAMPS = (
    *(InvalidTimestampKind[kind.name].value for kind in TimestampKind if kind is not TimestampKind.MILLISECONDS),
    InvalidTimestampKind.FUTURE.value,
)
NAMES = ("", *INVALID_TIMESTAMPS, UncertainTimestampKind.FUTURE.value)
_FUTURE, _MAYBE_FUTURE = len(TimestampKind), len(TimestampKind) + 1
_TIMELESS = [TimestampKind.ZERO, TimestampKind.NEGATIVE, _FUTURE]
BY_NAME_ONLY = (InvalidTimestampKind.FUTURE.value, InvalidTimestampKind.IMPLAUSIBLE.value)
"""Kinds that may contain valid times. They are rewritten only on request, except times that are certainly ahead."""
_ALSO = {InvalidTimestampKind.FUTURE.value: UncertainTimestampKind.FUTURE.value}


class RepairHeader(StrEnum):
    """Headers that follow a corrected record's own headers."""

    ORIGIN = "sluicegate.origin"  # topic/partition/offset
    TIMESTAMP = "sluicegate.timestamp"  # the original timestamp
    KIND = "sluicegate.repair"  # the kind of invalid timestamp


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a repair.

    - `now_ms`: the moment of reading, as of which kinds are determined.
    - `keep`: kinds of invalid timestamps that stay unchanged.
    - `rewrite`: kinds in `BY_NAME_ONLY` that are rewritten.
    - `assume_ms`: the append time for partitions without any usable time.
    - `epoch_ms`: earlier times are implausible; None means ten years before `now_ms`.
    - `retention`: the retention of clean topics.
    - `skip_unreadable`: whether to skip batches that cannot be read.
    - `skip_unwritable`: whether to skip records with header names that client libraries cannot write.
    """

    now_ms: int
    after_max_ms: int
    keep: frozenset[str] = frozenset()
    assume_ms: int | None = None
    rewrite: frozenset[str] = frozenset()
    epoch_ms: int | None = None
    retention: Retention = Retention.KEEP
    skip_unreadable: bool = False
    skip_unwritable: bool = False


@dataclass(frozen=True, slots=True)
class Corrections:
    """The corrections of a group of records.

    For each record there are its `kinds` (an index into `NAMES`; 0 means none), the timestamp `after`, whether it was
    `solved`, and whether its time may be valid, that is, neither certainly ahead, nor zero, negative or in another
    unit.
    """

    kinds: NDArray[np.int8]
    after: NDArray[np.int64]
    solved: NDArray[np.bool_]
    may_be_valid: NDArray[np.bool_]


def correct_timestamps(
    timestamps: NDArray[np.int64], offsets: NDArray[np.int64], clock: Clock | None, times: AppendTimes, rules: Rules
) -> Corrections:
    """Correct the records of one partition in order.

    `times` contains the ranges in which they were appended. `clock` provides the times to write; None if no neighbour
    dates the appends.
    """
    kinds = TimestampKinds(rules.now_ms, rules.epoch_ms).kinds_of(timestamps)
    after = timestamps.copy()
    doubts = times.doubts(timestamps, offsets, rules.after_max_ms, None)
    in_ms = kinds == TimestampKind.MILLISECONDS
    kinds[in_ms & (doubts == TimestampDoubt.FUTURE)] = _FUTURE
    kinds[in_ms & (doubts == TimestampDoubt.MAYBE_FUTURE)] = _MAYBE_FUTURE
    solved = np.zeros(len(timestamps), np.bool_)
    may_be_valid = (kinds == TimestampKind.IMPLAUSIBLE) | (kinds == _MAYBE_FUTURE)
    if not kinds.any():
        return Corrections(kinds, after, solved, may_be_valid)
    meant = in_milliseconds(timestamps, kinds)
    # Without an estimate, the moment of reading is the best known time.
    appended = clock.at(offsets) if clock is not None else np.full(len(offsets), rules.now_ms, np.int64)
    in_unit = np.isin(kinds, list(UNITS)) & (
        meant <= np.maximum(saturating_add(appended, rules.after_max_ms), rules.now_ms)
    )
    after[in_unit], solved[in_unit] = meant[in_unit], True
    if clock is not None:
        timeless = np.isin(kinds, _TIMELESS)
        for name in _with_doubts(rules.rewrite):
            timeless |= kinds == NAMES.index(name)
        after[timeless], solved[timeless] = appended[timeless], True
    kept = np.isin(kinds, [NAMES.index(name) for name in _with_doubts(rules.keep)])
    after[kept], solved[kept] = timestamps[kept], False
    return Corrections(kinds, after, solved, may_be_valid)


def _with_doubts(kinds: Iterable[str]) -> list[str]:
    return [name for kind in kinds for name in (kind, _ALSO.get(kind)) if name is not None]


def clock_from(value: Mapping[str, Any] | None) -> Clock | None:
    """Return the clock in a plan."""
    if value is None:
        return None
    return Clock(np.array(value["offsets"], np.int64), np.array(value["times"], np.int64))


def clock_as_plan(clock: Clock | None) -> dict[str, list[int]] | None:
    """Return a clock in the form that a plan contains and `clock_from` reads."""
    return None if clock is None else {"offsets": clock.offsets.tolist(), "times": clock.times.tolist()}
