"""Gives records whose time breaks a topic's bounds another one (`fix`), where the whole batch is understood.

A batch that was fixed is validated again as it is now: what is forwarded keeps the topic's rules.
"""

from dataclasses import dataclass, replace

from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.codecs.compression import compress
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import Allowance, OverLimit
from sluicegate.protocol.records.record_batch import HEADER_BYTES, LOG_APPEND_TIME, NO_TIMESTAMP, RecordBatch
from sluicegate.protocol.records.restamp import restamp_records, with_payload
from sluicegate.validation.policy import Fix, Framing, TopicPolicy, ValidationLimits
from sluicegate.validation.previous_times import PreviousTimes, PreviousTimesInOrder
from sluicegate.validation.timestamps import TimeWindow, window_of
from sluicegate.validation.units import in_milliseconds, unit_of
from sluicegate.validation.verdict import TIMED, Reason, Rejected

# A broker validates later, and by its own clock: times are moved so far within a bound, or half of it.
_WITHIN_MS = 60_000
# Of a batch that was fixed, for the report of it.
_MOST_LISTED = 100


Previous = PreviousTimes | PreviousTimesInOrder


@dataclass(frozen=True, slots=True)
class Fixed:
    """`records` goes in the place of what came. `rejected` is what would have been answered, its bad records with the
    times that they were given.
    """

    records: bytes
    rejected: Rejected


def fix_times(
    place: tuple[str, int],
    records: memoryview,
    rejected: Rejected,
    policy: TopicPolicy,
    limits: ValidationLimits,
    now_ms: int,
    previous: Previous,
    decompressor: Decompressor,
    allowance: Allowance,
) -> Fixed | None:
    """The batch of a partition, rejected for its times alone as far as it was validated; None where it cannot be fixed.

    `allowance` is one to read again by: the payload was read before. Raises PreviousUnderWay, and what `allowance`
    raises to give way, or where this may take longer than there is time for.
    """
    window = window_of(policy, now_ms)
    if rejected.reason not in TIMED or window is None or policy.fix is None:
        return None
    if any(record.reason not in TIMED for record in rejected.bad_records):
        return None
    batch = RecordBatch(records, 0, len(records))
    if batch.attributes & LOG_APPEND_TIME:
        return None  # its records' own times count for nothing
    codec = Codec(batch.codec_id)
    plain = _plain_payload(records[HEADER_BYTES:], codec, policy.framing, limits, decompressor, allowance)
    if plain is None:
        return None
    known = previous.of(*place) if policy.fix is Fix.PREVIOUS else None
    stamp = _Stamp(policy.fix, window, known)
    found = restamp_records(plain, batch.record_count, batch.base_timestamp, stamp, allowance)
    if found is None:
        return None
    made = with_payload(batch, compress(codec, found.payload), found.base_timestamp, found.max_timestamp)
    listed = tuple(replace(r, fixed=stamp.given[r.index]) for r in rejected.bad_records if r.index in stamp.given)
    return Fixed(made, replace(rejected, bad_records=listed[:_MOST_LISTED]))


def _plain_payload(
    payload: memoryview,
    codec: Codec,
    framing: Framing,
    limits: ValidationLimits,
    decompressor: Decompressor,
    allowance: Allowance,
) -> memoryview | None:
    """None where it is not understood, or where compressing it again would repair it."""
    if codec is Codec.NONE:
        allowance.check_at_once(len(payload))
        return payload
    try:
        found = decompressor.decompress(codec, payload, min(limits.plain_limit(len(payload)), allowance.plain_left))
        allowance.check_at_once(len(found.data))
        allowance.worked(len(found.data))
    except OverLimit:
        return None
    if found.failure is not None or (found.oddity is not None and framing is not Framing.BROKER):
        return None
    return memoryview(bytes(found.data))


class _Stamp:
    """The time that each record gets; `given` are those that were changed."""

    def __init__(self, fix: Fix, window: TimeWindow, previous: int | None) -> None:
        self._fix = fix
        self._window = window
        self._previous = previous
        self.given: dict[int, int] = {}

    def __call__(self, index: int, time: int) -> int | None:
        breach = self._window.breach(time)
        if breach is None:
            if time != NO_TIMESTAMP:
                self._previous = time if self._previous is None else max(time, self._previous)
            return time
        given = self._new_time(time, breach)
        if given is not None and len(self.given) < _MOST_LISTED:
            self.given[index] = given
        return given

    def _new_time(self, time: int, breach: Reason) -> int | None:
        window = self._window
        match self._fix:
            case Fix.NOW:
                return window.now_ms
            case Fix.PREVIOUS:
                return self._previous
            case Fix.UNIT:
                unit = unit_of(time, window.now_ms)
                return in_milliseconds(time, unit) if unit is not None else None
            case Fix.CLAMP:
                if breach is Reason.TIMESTAMP_BEFORE:
                    return window.now_ms - _within(window.before_max_ms)
                return window.now_ms + _within(window.after_max_ms)


def _within(bound_ms: int) -> int:
    return max(bound_ms - _WITHIN_MS, bound_ms // 2)
