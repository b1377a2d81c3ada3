"""Fixes timestamps outside a topic's bounds (`fix`), if the whole batch is readable.

A fixed batch is validated again, so every forwarded batch follows the topic's rules.
"""

from dataclasses import replace

from sluicegate.protocol.records.batch_output import BatchTooLarge
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, OverLimit
from sluicegate.protocol.records.record_batch import LOG_APPEND_TIME, NO_TIMESTAMP, RecordBatch
from sluicegate.protocol.records.rewriting import CannotRewrite, RecordChange, RecordReader
from sluicegate.validation.dispositions.rewritten import Rewriting
from sluicegate.validation.policy import Framing, TimeFix, TopicPolicy, ValidationLimits
from sluicegate.validation.previous_times import PreviousTimes, PreviousTimesInOrder
from sluicegate.validation.timestamps import TimeWindow, window_of
from sluicegate.validation.units import in_milliseconds, unit_of
from sluicegate.validation.validated_request import FixedBatch
from sluicegate.validation.verdict import TIMED, Finding, Reason

# A broker validates later and by its own clock. Clamped timestamps therefore stay this far inside the bound, but by no
# more than half of the bound.
_WITHIN_MS = 60_000
# The maximum number of records that the report of a fixed batch lists.
_MOST_LISTED = 100


Previous = PreviousTimes | PreviousTimesInOrder


def fix_times(
    place: tuple[str, int],
    records: memoryview,
    rejected: Finding,
    policy: TopicPolicy,
    limits: ValidationLimits,
    now_ms: int,
    previous: Previous,
    most_bytes: int,
    decompressor: Decompressor,
    budget: DecompressionBudget,
) -> FixedBatch | None:
    """Fix a partition's batch that was rejected only for its timestamps; return None if it cannot be fixed.

    `most_bytes` is the maximum size of the fixed batch. `budget` is for reading the payload a second time. Raises
    PreviousTimeInFlight, and the errors of `budget`.
    """
    window = window_of(policy, now_ms)
    if rejected.reason not in TIMED or window is None or policy.fix is None:
        return None
    if any(record.reason not in TIMED for record in rejected.bad_records):
        return None
    batch = RecordBatch(records, 0, len(records))
    if batch.attributes & LOG_APPEND_TIME:
        return None  # the records' own timestamps have no effect
    known = previous.time_of(*place) if policy.fix is TimeFix.PREVIOUS else None
    stamp = _Stamp(policy.fix, window, known)
    rewriting = Rewriting(records, batch, most_bytes, limits, decompressor, budget)
    try:
        changed = rewriting.changed(stamp)
        if changed is None or (rewriting.oddity is not None and policy.framing is not Framing.BROKER):
            return None  # the batch would have to be compressed again, which would repair the payload
        made = rewriting.finished(changed.base_timestamp, changed.latest)
    except (CannotRewrite, BatchTooLarge, OverLimit, _NoNewTime):
        return None
    listed = tuple(replace(r, fixed=stamp.given[r.index]) for r in rejected.bad_records if r.index in stamp.given)
    return FixedBatch(made, replace(rejected, bad_records=listed[:_MOST_LISTED]))


class _NoNewTime(Exception):
    """Raised if a timestamp cannot be fixed."""


class _Stamp:
    """A callable that returns each record's new timestamp. `given` contains the changed timestamps."""

    def __init__(self, fix: TimeFix, window: TimeWindow, previous: int | None) -> None:
        self._fix = fix
        self._window = window
        self._previous = previous
        self.given: dict[int, int] = {}

    def __call__(self, record: RecordReader) -> RecordChange | None:
        """Return the change for a record.

        The first record always gets one, because its time is the batch's base timestamp.
        """
        index, time = record.index, record.timestamp
        breach = self._window.breach(time)
        if breach is None:
            if time != NO_TIMESTAMP:
                self._previous = time if self._previous is None else max(time, self._previous)
            return RecordChange(time=time) if index == 0 else None
        given = self._new_time(time, breach)
        if given is None:
            raise _NoNewTime
        if len(self.given) < _MOST_LISTED:
            self.given[index] = given
        return RecordChange(time=given)

    def _new_time(self, time: int, breach: Reason) -> int | None:
        window = self._window
        match self._fix:
            case TimeFix.NOW:
                return window.now_ms
            case TimeFix.PREVIOUS:
                return self._previous
            case TimeFix.UNIT:
                unit = unit_of(time, window.now_ms)
                return in_milliseconds(time, unit) if unit is not None else None
            case TimeFix.CLAMP:
                if breach is Reason.TIMESTAMP_TOO_OLD:
                    return window.now_ms - _within(window.before_max_ms)
                return window.now_ms + _within(window.after_max_ms)


def _within(bound_ms: int) -> int:
    return max(bound_ms - _WITHIN_MS, bound_ms // 2)
