"""What a damaged timestamp should have been.

A number in another unit is converted, unless even then it lies ahead of its append. Zero, negative and future times say
nothing of their own: they become the estimated time of append. What neither tells is left as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.profile.clock import Clock
from pipeline.profile.damage import Damage, saturated
from pipeline.profile.kinds import UNITS, Kind, Kinds
from validation.units import Unit

_MS_PER_SECOND = 1000
_PER_MS = {Kind.MICROSECONDS: 1_000, Kind.NANOSECONDS: 1_000_000}
NAMES = ("", *(Damage[kind.name].value for kind in Kind if kind is not Kind.MILLISECONDS), Damage.FUTURE.value)
_FUTURE = len(Kind)


class RepairHeader(StrEnum):
    """What a corrected record carries behind its own headers."""

    ORIGIN = "sluicegate.origin"  # topic/partition/offset
    TIMESTAMP = "sluicegate.timestamp"  # as it was
    KIND = "sluicegate.repair"  # which damage it was


@dataclass(frozen=True, slots=True)
class Rules:
    """`now_ms`: the moment that kinds are told by; `keep`: damages that are left alone; `assume_ms`: the time of append
    in partitions where nothing tells of one.
    """

    now_ms: int
    after_max_ms: int
    keep: frozenset[str] = frozenset()
    assume_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Corrections:
    """For each record: `kinds`, an index into `NAMES` (0 none), the timestamp `after`, and whether it was `solved`."""

    kinds: NDArray[np.int8]
    after: NDArray[np.int64]
    solved: NDArray[np.bool_]


def correct(
    timestamps: NDArray[np.int64], offsets: NDArray[np.int64], clock: Clock | None, rules: Rules
) -> Corrections:
    """Records of one partition, in their order. A clock of None: nothing around them tells when they were appended."""
    kinds = Kinds(rules.now_ms).of(timestamps)
    after = timestamps.copy()
    # Without a clock only what is ahead of the present is known to be in the future, and for no time there is a better.
    appended = clock.at(offsets) if clock is not None else np.full(len(offsets), rules.now_ms, np.int64)
    latest = saturated(appended, rules.after_max_ms)
    kinds[(kinds == Kind.MILLISECONDS) & (timestamps > latest)] = _FUTURE
    solved = np.zeros(len(timestamps), np.bool_)
    if not kinds.any():
        return Corrections(kinds, after, solved)
    for kind in UNITS:
        its = kinds == kind
        if its.any():
            meant = _in_milliseconds(timestamps[its], kind)
            after[its] = np.where(meant <= latest[its], meant, timestamps[its])
            solved[its] = meant <= latest[its]
    if clock is not None:
        timeless = (kinds == Kind.ZERO) | (kinds == Kind.NEGATIVE) | (kinds == _FUTURE)
        after[timeless] = appended[timeless]
        solved[timeless] = True
    for place, name in enumerate(NAMES):
        if name in rules.keep:
            kept = kinds == place
            after[kept] = timestamps[kept]
            solved[kept] = False
    return Corrections(kinds, after, solved)


def _in_milliseconds(timestamps: NDArray[np.int64], kind: Kind) -> NDArray[np.int64]:
    """As `validation.units.in_milliseconds`, many at a time."""
    if UNITS[kind] is Unit.SECONDS:
        return timestamps * _MS_PER_SECOND
    return timestamps // _PER_MS[kind]


def clock_from(value: Mapping[str, Any] | None) -> Clock | None:
    """As a plan holds it."""
    if value is None:
        return None
    return Clock(np.array(value["offsets"], np.int64), np.array(value["times"], np.int64))


def clock_as_plan(clock: Clock | None) -> dict[str, list[int]] | None:
    """To be read by `clock_from`."""
    return None if clock is None else {"offsets": clock.offsets.tolist(), "times": clock.times.tolist()}
