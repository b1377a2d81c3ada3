"""Bad times are replaced correctly, and batches that cannot be fixed are rejected."""

from dataclasses import replace

import pytest

from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, OutOfTime
from sluicegate.validation.dispositions.fixes import Previous
from sluicegate.validation.policy import RehearsedBounds, TimeFix, TopicPolicy, ValidationLimits
from sluicegate.validation.previous_times import PreviousTimeInFlight, PreviousTimes, PreviousTimesInOrder
from sluicegate.validation.produce.request import validate_request
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.validated_request import ValidatedRequest
from sluicegate.validation.verdict import Reason
from tests.wire.batches import CODECS, LZ4, NONE, Rec, batch, message
from tests.wire.raw_client import produce_body, topic_data

NOW = 1_800_000_000_000
HOUR = 3_600_000
LIMITS = ValidationLimits(max_decompressed_bytes=1 << 30)
BOUNDED = TopicPolicy(before_max_ms=24 * HOUR, after_max_ms=HOUR)


def validate_batches(
    policy: TopicPolicy,
    *batches: bytes,
    previous: Previous | None = None,
    version: int = 9,
    most_held: int = 1 << 60,
    limits: ValidationLimits = LIMITS,
) -> ValidatedRequest:
    """Validate batches as one request; good batches count as stored."""
    body = produce_body(version, [topic_data("t", *enumerate(batches))])
    request = walk_produce_request(bytearray(body), version, 0, 100)
    plain, headers = limits.max_decompressed_bytes, limits.max_request_headers
    budget = DecompressionBudget(plain, 1000, lambda: None, most_headers=headers, most_held=most_held)
    found = validate_request(request, {}, lambda _: policy, limits, lambda: NOW, Decompressor(), budget, previous)
    for partition, latest in found.times.values():
        if isinstance(previous, PreviousTimes):
            previous.note_stored(*partition, latest)
    return found


def policy_with_fix(fix: TimeFix, policy: TopicPolicy = BOUNDED) -> TopicPolicy:
    return replace(policy, fix=fix)


@pytest.mark.parametrize(
    ("fix", "time", "becomes"),
    [
        (TimeFix.NOW, NOW + 2 * HOUR, NOW),
        (TimeFix.NOW, 0, NOW),
        (TimeFix.CLAMP, NOW + 2 * HOUR, NOW + HOUR - 60_000),
        (TimeFix.CLAMP, 5, NOW - 24 * HOUR + 60_000),
        (TimeFix.UNIT, NOW // 1000, NOW),
        (TimeFix.UNIT, NOW * 1000 + 999, NOW),
        (TimeFix.UNIT, NOW * 1_000_000 + 999_999, NOW),
    ],
)
@pytest.mark.parametrize("codec", list(CODECS.values()))
def test_time_fix_replaces_bad_timestamps_and_keeps_good_ones(
    fix: TimeFix, time: int, becomes: int, codec: int
) -> None:
    state = {"producer_id": 5, "producer_epoch": 1, "base_sequence": 3}
    original = batch([Rec(NOW - 7), Rec(time, b"key", b"value", [(b"h", None)]), Rec(-1)], codec, **state)
    wanted = [Rec(NOW - 7), Rec(becomes, b"key", b"value", [(b"h", None)]), Rec(-1)]

    found = validate_batches(policy_with_fix(fix), original)

    assert found.rejected == {}
    assert found.accepted[0, 0].records == 3
    fixed = found.fixed[0, 0]
    assert (fixed.finding.bad_count, [(r.index, r.timestamp, r.fixed) for r in fixed.finding.bad_records]) == (
        1,
        [(1, time, becomes)],
    )
    if codec == NONE:
        assert fixed.records == batch(wanted, **state)


def test_previous_time_fix_uses_the_last_good_record_or_the_stored_partition_time() -> None:
    previous = PreviousTimes()
    bad = Rec(NOW * 1_000_000)

    nothing = validate_batches(policy_with_fix(TimeFix.PREVIOUS), batch([bad]), previous=previous)
    within = validate_batches(
        policy_with_fix(TimeFix.PREVIOUS), batch([Rec(NOW - 50), Rec(NOW - 90), bad]), previous=previous
    )
    later = validate_batches(policy_with_fix(TimeFix.PREVIOUS), batch([bad]), batch([bad]), previous=previous)

    assert nothing.rejected[0, 0].reason is Reason.TIMESTAMP_IN_FUTURE
    assert within.fixed[0, 0].finding.bad_records[0].fixed == NOW - 50
    assert later.fixed[0, 0].finding.bad_records[0].fixed == NOW - 50
    assert set(later.rejected) == {(0, 1)}, "the other partition had no valid time"


def test_good_batch_is_not_fixed_and_sets_the_previous_time() -> None:
    previous = PreviousTimes()

    found = validate_batches(policy_with_fix(TimeFix.PREVIOUS), batch([Rec(NOW - 5), Rec(NOW - 9)]), previous=previous)
    validate_batches(policy_with_fix(TimeFix.PREVIOUS), batch([Rec(-1)]), previous=previous)

    assert found.fixed == {}
    assert previous.time_of("t", 0) == NOW - 5


@pytest.mark.parametrize("fix", list(TimeFix))
@pytest.mark.parametrize(
    "original",
    [
        batch([Rec(0), Rec(0)], crc=1),
        batch([Rec(0), Rec(0)], count=3, last_offset_delta=2),
        batch([Rec(0)], LZ4, compressed=b"damaged"),
        batch([Rec(0)], flags=8),
        batch([Rec(0)]) + batch([Rec(0)]),
    ],
)
def test_does_not_fix_batches_with_other_violations(fix: TimeFix, original: bytes) -> None:
    plain, found = validate_batches(BOUNDED, original), validate_batches(policy_with_fix(fix), original)

    assert found.fixed == {}
    assert found.rejected == plain.rejected != {}


def test_batch_with_another_violation_is_rejected_for_all_its_violations() -> None:
    policy = replace(BOUNDED, compacted=True, fix=TimeFix.NOW)

    found = validate_batches(policy, batch([Rec(0), Rec(NOW, key=None)]))

    assert found.fixed == {}
    assert [record.reason for record in found.rejected[0, 0].bad_records] == [Reason.TIMESTAMP_TOO_OLD, Reason.NULL_KEY]


def test_unit_fix_rejects_timestamp_that_is_implausible_in_every_unit() -> None:
    found = validate_batches(policy_with_fix(TimeFix.UNIT), batch([Rec(NOW // 1000), Rec(77)]))

    assert found.fixed == {}
    assert found.rejected[0, 0].bad_count == 2


def test_does_not_fix_old_message_formats() -> None:
    found = validate_batches(policy_with_fix(TimeFix.NOW), message(1, b"v", timestamp=5), version=2)

    assert found.fixed == {}
    assert set(found.rejected) == {(0, 0)}


def test_does_not_fix_batches_of_an_observed_topic() -> None:
    found = validate_batches(replace(BOUNDED, fix=TimeFix.NOW, mode=Mode.OBSERVE), batch([Rec(0)]))

    assert (found.fixed, set(found.observed)) == ({}, {(0, 0)})


@pytest.mark.parametrize("codec", [NONE, LZ4])
def test_fix_of_a_large_batch_raises_out_of_time(codec: int) -> None:
    with pytest.raises(OutOfTime):
        validate_batches(policy_with_fix(TimeFix.NOW), batch([Rec(0, value=bytes(2000))], codec), most_held=1000)


def test_previous_times_keep_a_bounded_number_of_partitions() -> None:
    previous = PreviousTimes(most_partitions=10)
    for partition in range(1000):
        previous.note_stored("t", partition, NOW)

    assert [previous.time_of("t", partition) for partition in (0, 989, 990, 999)] == [None, None, NOW, NOW]


@pytest.mark.parametrize("codec", list(CODECS.values()))
@pytest.mark.parametrize("fix", [TimeFix.NOW, TimeFix.CLAMP, TimeFix.PREVIOUS, TimeFix.UNIT])
def test_fixed_batch_uses_no_more_request_limits_than_a_good_one(fix: TimeFix, codec: int) -> None:
    bad = NOW * 1_000_000
    headers = [(b"h", b"v"), (b"i", None)]
    times = [NOW - 9, *[bad if i == 30 else NOW - 9 for i in range(99)]]
    original = batch([Rec(time, b"k", b"v" * 1000, headers) for time in times], codec)
    good = batch([Rec(NOW - 9, b"k", b"v" * 1000, headers) for _ in times], codec)
    plain = 0 if codec == NONE else 150_000  # the compressed size counts; twice that would be rejected
    limits = ValidationLimits(max_decompressed_bytes=plain, max_request_headers=2 * len(times))

    assert validate_batches(policy_with_fix(fix), good, limits=limits).rejected == {}
    found = validate_batches(policy_with_fix(fix), original, limits=limits)

    assert found.rejected == {}
    assert set(found.fixed) == {(0, 0)}


def test_request_limits_left_by_fixed_batches_apply_to_the_next_batch() -> None:
    original = batch([Rec(NOW * 1_000_000, None, b"v" * 60_000)], LZ4)
    limits = ValidationLimits(max_decompressed_bytes=130_000)

    found = validate_batches(policy_with_fix(TimeFix.NOW), original, original, original, limits=limits)

    assert set(found.fixed) == {(0, 0), (0, 1)}
    assert found.rejected[0, 2].reason is Reason.DECOMPRESSION_LIMIT


def test_accepts_fixed_batch_with_a_better_compression_ratio() -> None:
    """A fixed batch may have a compression ratio above the limit, although the original had not."""
    value = bytes(2 << 20)
    original = batch([Rec(NOW * 1_000_000, None, value)], CODECS["zstd"])
    limits = ValidationLimits(max_decompression_ratio=1, ratio_free_bytes=len(value) + 100)

    assert set(validate_batches(policy_with_fix(TimeFix.NOW), original, limits=limits).fixed) == {(0, 0)}


@pytest.mark.parametrize("ago", [5_000, 2 * HOUR, 30 * HOUR])
def test_previous_time_fix_ignores_rehearsed_bounds(ago: int) -> None:
    policy = replace(BOUNDED, before_max_ms=48 * HOUR, rehearsed=RehearsedBounds((HOUR, 24 * HOUR), (60_000,)))
    previous = PreviousTimes()

    validate_batches(
        policy_with_fix(TimeFix.PREVIOUS, policy), batch([Rec(NOW - ago), Rec(NOW - ago - 10)]), previous=previous
    )
    fixed = validate_batches(
        policy_with_fix(TimeFix.PREVIOUS, policy), batch([Rec(NOW * 1_000_000)]), previous=previous
    ).fixed

    assert fixed[0, 0].finding.bad_records[0].fixed == NOW - ago


def test_batch_without_timestamps_sets_no_previous_time() -> None:
    previous = PreviousTimes()

    validate_batches(policy_with_fix(TimeFix.PREVIOUS), batch([Rec(-1)]), previous=previous)
    validate_batches(policy_with_fix(TimeFix.PREVIOUS), batch([Rec(NOW - 5)], flags=8), previous=previous)
    validate_batches(policy_with_fix(TimeFix.PREVIOUS), message(0, b"v"), version=2, previous=previous)

    assert previous.time_of("t", 0) is None


def test_a_previous_time_fix_waits_for_requests_in_flight() -> None:
    known = PreviousTimes()
    known.note_stored("t", 0, NOW - 9)
    under_way = {("t", 0)}
    previous = PreviousTimesInOrder(known, under_way)
    bad = batch([Rec(NOW * 1_000_000)])

    with pytest.raises(PreviousTimeInFlight):
        validate_batches(policy_with_fix(TimeFix.PREVIOUS), bad, previous=previous)
    under_way.clear()

    fixed = validate_batches(policy_with_fix(TimeFix.PREVIOUS), bad, previous=previous).fixed
    assert fixed[0, 0].finding.bad_records[0].fixed == NOW - 9
