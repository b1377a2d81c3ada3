"""What a bad time becomes, and which batches are left to be refused."""

from dataclasses import replace

import pytest

from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.records.allowance import Allowance, OutOfTime
from sluicegate.protocol.records.compression import Decompressor
from sluicegate.validation.policy import Fix, JudgementLimits, Mode, TopicPolicy
from sluicegate.validation.previous_times import PreviousTimes
from sluicegate.validation.produce import JudgedRequest, judge_request
from sluicegate.validation.verdict import Reason
from tests.wire.batches import CODECS, LZ4, NONE, Rec, batch, message
from tests.wire.raw_client import produce_body, topic_data

NOW = 1_800_000_000_000
HOUR = 3_600_000
BOUNDED = TopicPolicy(before_max_ms=24 * HOUR, after_max_ms=HOUR)


def judged(
    policy: TopicPolicy,
    *batches: bytes,
    previous: PreviousTimes | None = None,
    version: int = 9,
    at_once: int = 1 << 60,
) -> JudgedRequest:
    body = produce_body(version, [topic_data("t", *enumerate(batches))])
    request = walk_produce_request(bytearray(body), version, 0, 100)
    allowance = Allowance(1 << 30, 1000, lambda: None, at_once)
    return judge_request(
        request, {}, lambda _: policy, JudgementLimits(), lambda: NOW, Decompressor(), allowance, previous
    )


def fixing(fix: Fix, policy: TopicPolicy = BOUNDED) -> TopicPolicy:
    return replace(policy, fix=fix)


@pytest.mark.parametrize(
    ("fix", "time", "becomes"),
    [
        (Fix.NOW, NOW + 2 * HOUR, NOW),
        (Fix.NOW, 0, NOW),
        (Fix.CLAMP, NOW + 2 * HOUR, NOW + HOUR - 60_000),
        (Fix.CLAMP, 5, NOW - 24 * HOUR + 60_000),
        (Fix.UNIT, NOW // 1000, NOW),
        (Fix.UNIT, NOW * 1000 + 999, NOW),
        (Fix.UNIT, NOW * 1_000_000 + 999_999, NOW),
    ],
)
@pytest.mark.parametrize("codec", list(CODECS.values()))
def test_a_bad_time_becomes_another_and_good_ones_stay(fix: Fix, time: int, becomes: int, codec: int) -> None:
    state = {"producer_id": 5, "producer_epoch": 1, "base_sequence": 3}
    came = batch([Rec(NOW - 7), Rec(time, b"key", b"value", [(b"h", None)]), Rec(-1)], codec, **state)  # type: ignore[arg-type]
    wanted = [Rec(NOW - 7), Rec(becomes, b"key", b"value", [(b"h", None)]), Rec(-1)]

    found = judged(fixing(fix), came)

    assert found.refused == {}
    assert found.accepted[0, 0].records == 3
    fixed = found.fixed[0, 0]
    assert (fixed.refused.bad_count, [(r.index, r.timestamp, r.fixed) for r in fixed.refused.bad_records]) == (
        1,
        [(1, time, becomes)],
    )
    if codec == NONE:
        assert fixed.records == batch(wanted, **state)  # type: ignore[arg-type]


def test_the_time_before_is_that_of_the_record_before_or_of_the_partition() -> None:
    previous = PreviousTimes()
    bad = Rec(NOW * 1_000_000)

    nothing = judged(fixing(Fix.PREVIOUS), batch([bad]), previous=previous)
    within = judged(fixing(Fix.PREVIOUS), batch([Rec(NOW - 50), Rec(NOW - 90), bad]), previous=previous)
    later = judged(fixing(Fix.PREVIOUS), batch([bad]), batch([bad]), previous=previous)

    assert nothing.refused[0, 0].reason is Reason.TIMESTAMP_AFTER
    assert within.fixed[0, 0].refused.bad_records[0].fixed == NOW - 50
    assert later.fixed[0, 0].refused.bad_records[0].fixed == NOW - 50
    assert set(later.refused) == {(0, 1)}, "another partition has had none"


def test_good_batches_are_forwarded_as_they_came_and_remembered() -> None:
    previous = PreviousTimes()

    found = judged(fixing(Fix.PREVIOUS), batch([Rec(NOW - 5), Rec(NOW - 9)]), previous=previous)
    judged(fixing(Fix.PREVIOUS), batch([Rec(-1)]), previous=previous)

    assert found.fixed == {}
    assert previous.of("t", 0) == NOW - 5


@pytest.mark.parametrize("fix", list(Fix))
@pytest.mark.parametrize(
    "came",
    [
        batch([Rec(0), Rec(0)], crc=1),
        batch([Rec(0), Rec(0)], count=3, last_offset_delta=2),
        batch([Rec(0)], LZ4, compressed=b"damaged"),
        batch([Rec(0)], flags=8),
        batch([Rec(0)]) + batch([Rec(0)]),
    ],
)
def test_nothing_is_fixed_of_what_is_wrong_otherwise(fix: Fix, came: bytes) -> None:
    plain, found = judged(BOUNDED, came), judged(fixing(fix), came)

    assert found.fixed == {}
    assert found.refused == plain.refused != {}


def test_a_batch_that_breaks_another_rule_too_is_refused_for_all_of_it() -> None:
    policy = replace(BOUNDED, compacted=True, fix=Fix.NOW)

    found = judged(policy, batch([Rec(0), Rec(NOW, key=None)]))

    assert found.fixed == {}
    assert [record.reason for record in found.refused[0, 0].bad_records] == [Reason.TIMESTAMP_BEFORE, Reason.NULL_KEY]


def test_what_is_plausible_in_no_unit_is_refused() -> None:
    found = judged(fixing(Fix.UNIT), batch([Rec(NOW // 1000), Rec(77)]))

    assert found.fixed == {}
    assert found.refused[0, 0].bad_count == 2


def test_old_requests_and_messages_are_not_fixed() -> None:
    found = judged(fixing(Fix.NOW), message(1, b"v", timestamp=5), version=2)

    assert found.fixed == {}
    assert set(found.refused) == {(0, 0)}


def test_an_observed_topic_is_not_fixed() -> None:
    found = judged(replace(BOUNDED, fix=Fix.NOW, mode=Mode.OBSERVE), batch([Rec(0)]))

    assert (found.fixed, set(found.observed)) == ({}, {(0, 0)})


@pytest.mark.parametrize("codec", [NONE, LZ4])
def test_what_takes_long_is_for_a_thread(codec: int) -> None:
    with pytest.raises(OutOfTime):
        judged(fixing(Fix.NOW), batch([Rec(0, value=bytes(2000))], codec), at_once=1000)


def test_partitions_without_end_cost_no_memory_without_end() -> None:
    previous = PreviousTimes(most_partitions=10)
    for partition in range(1000):
        previous.saw("t", partition, NOW)

    assert [previous.of("t", partition) for partition in (0, 989, 990, 999)] == [None, None, NOW, NOW]
