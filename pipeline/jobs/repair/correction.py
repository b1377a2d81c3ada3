"""What a damaged timestamp should have been.

A number in another unit is converted, unless even then it lies ahead of its append and of the moment of reading. Zero
and negative times, and those ahead of the moment of reading, say nothing of their own: they become the estimated time
of append. What lies before that moment may be sound, whatever the clock makes of it, and is rewritten only where that
is asked for by name; so is what is implausible. What neither tells is left as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sluicegate.pipeline.jobs.profile.clock import Clock
from sluicegate.pipeline.jobs.profile.damage import Damage, saturated
from sluicegate.pipeline.jobs.profile.kinds import UNITS, Kind, Kinds, in_milliseconds
from sluicegate.pipeline.jobs.repair.settings import Retention

NAMES = ("", *(Damage[kind.name].value for kind in Kind if kind is not Kind.MILLISECONDS), Damage.FUTURE.value)
_FUTURE = len(Kind)
_TIMELESS = [Kind.ZERO, Kind.NEGATIVE, _FUTURE]
BY_NAME_ONLY = (Damage.FUTURE.value, Damage.IMPLAUSIBLE.value)
"""Damages whose times may be sound: they are rewritten where that is asked for, and future ones that are ahead of the
moment of reading in any case.
"""


class RepairHeader(StrEnum):
    """What a corrected record carries behind its own headers."""

    ORIGIN = "sluicegate.origin"  # topic/partition/offset
    TIMESTAMP = "sluicegate.timestamp"  # as it was
    KIND = "sluicegate.repair"  # which damage it was


@dataclass(frozen=True, slots=True)
class Rules:
    """`now_ms`: the moment of reading, that kinds are told by; `keep`: damages that are left alone; `rewrite`: those of
    `BY_NAME_ONLY` that are rewritten though they may be sound; `assume_ms`: the time of append in partitions where
    nothing tells of one; `epoch_ms`: what is before is implausible, None for ten years before `now_ms`; `retention`:
    what clean topics delete; `skip_unreadable`: batches that cannot be read are left out.
    """

    now_ms: int
    after_max_ms: int
    keep: frozenset[str] = frozenset()
    assume_ms: int | None = None
    rewrite: frozenset[str] = frozenset()
    epoch_ms: int | None = None
    retention: Retention = Retention.KEEP
    skip_unreadable: bool = False


@dataclass(frozen=True, slots=True)
class Corrections:
    """For each record: `kinds`, an index into `NAMES` (0 none), the timestamp `after`, whether it was `solved`, and
    whether its time may be sound: not ahead of the moment of reading, and no zero, negative or other unit.
    """

    kinds: NDArray[np.int8]
    after: NDArray[np.int64]
    solved: NDArray[np.bool_]
    may_be_sound: NDArray[np.bool_]


def correct(
    timestamps: NDArray[np.int64], offsets: NDArray[np.int64], clock: Clock | None, rules: Rules
) -> Corrections:
    """Records of one partition, in their order. A clock of None: nothing around them tells when they were appended."""
    kinds = Kinds(rules.now_ms, rules.epoch_ms).of(timestamps)
    after = timestamps.copy()
    # Without a clock only what is ahead of the present is known to be in the future, and for no time there is a better.
    appended = clock.at(offsets) if clock is not None else np.full(len(offsets), rules.now_ms, np.int64)
    latest = saturated(appended, rules.after_max_ms)
    kinds[(kinds == Kind.MILLISECONDS) & (timestamps > latest)] = _FUTURE
    solved = np.zeros(len(timestamps), np.bool_)
    may_be_sound = (kinds == Kind.IMPLAUSIBLE) | ((kinds == _FUTURE) & (timestamps <= rules.now_ms))
    if not kinds.any():
        return Corrections(kinds, after, solved, may_be_sound)
    meant = in_milliseconds(timestamps, kinds)
    in_unit = np.isin(kinds, list(UNITS)) & (meant <= np.maximum(latest, rules.now_ms))
    after[in_unit], solved[in_unit] = meant[in_unit], True
    if clock is not None:
        timeless = np.isin(kinds, _TIMELESS) & ~may_be_sound
        for name in rules.rewrite:
            timeless |= kinds == NAMES.index(name)
        after[timeless], solved[timeless] = appended[timeless], True
    kept = np.isin(kinds, [NAMES.index(name) for name in rules.keep])
    after[kept], solved[kept] = timestamps[kept], False
    return Corrections(kinds, after, solved, may_be_sound)


def clock_from(value: Mapping[str, Any] | None) -> Clock | None:
    """As a plan holds it."""
    if value is None:
        return None
    return Clock(np.array(value["offsets"], np.int64), np.array(value["times"], np.int64))


def clock_as_plan(clock: Clock | None) -> dict[str, list[int]] | None:
    """To be read by `clock_from`."""
    return None if clock is None else {"offsets": clock.offsets.tolist(), "times": clock.times.tolist()}
