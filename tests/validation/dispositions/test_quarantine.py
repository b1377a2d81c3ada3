"""All bad records in a rejected batch are found again, even those that no response lists."""

from dataclasses import replace

import pytest

from sluicegate.protocol.produce_request import PartitionData, ProduceRequest, TopicData
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.protocol.records.contents import TakenRecords, TooMuch
from sluicegate.protocol.records.record_batch import LOG_APPEND_TIME
from sluicegate.validation.dispositions.quarantine import ViolationCause, bad_records_of, can_be_quarantined
from sluicegate.validation.policy import RehearsedBounds, TimestampType, TopicPolicy, ValidationLimits
from sluicegate.validation.produce.request import validate_request
from sluicegate.validation.rules.rule import Mode, NamedRule, Part, RuledRecord
from sluicegate.validation.rules.rule_set import RuleSet
from sluicegate.validation.validated_request import ValidatedRequest, ValidationBasis
from sluicegate.validation.validator import Submission, validate_partition
from sluicegate.validation.verdict import Finding, Reason
from tests.validation.rules.inline_rule import InlineRule
from tests.wire.batches import CODECS, Rec, batch

NOW = 1_800_000_000_000
HOUR = 3_600_000
POLICY = TopicPolicy(before_max_ms=HOUR, after_max_ms=HOUR, mode=Mode.QUARANTINE, dead_letters="dead")
LIMITS = ValidationLimits()
MIN, MAX = -(2**63), 2**63 - 1


def verdict_and_records(data: bytes, policy: TopicPolicy = POLICY, most: int = 1 << 40) -> tuple[Finding, TakenRecords]:
    submission = Submission("t", 0, memoryview(data), 9)
    budget = DecompressionBudget(1 << 40, 2, lambda: None)
    rejected = validate_partition(submission, policy, LIMITS, NOW, Decompressor(), budget)
    assert isinstance(rejected, Finding)
    again = DecompressionBudget(1 << 40, 0, lambda: None)
    return rejected, bad_records_of(
        submission, (rejected,), ValidationBasis(policy, NOW), LIMITS, Decompressor(), again, most
    )


@pytest.mark.parametrize("codec", CODECS)
def test_quarantine_finds_all_bad_records_beyond_the_listed_ones(codec: str) -> None:
    records = [Rec(NOW if i % 3 else NOW + 2 * HOUR, f"{i}".encode(), bytes(i)) for i in range(300)]

    rejected, taken = verdict_and_records(batch(records, CODECS[codec]))

    assert (len(rejected.bad_records), rejected.bad_count) == (2, 100)
    assert [r.index for r in taken.records] == list(range(0, 300, 3))
    assert {r.why for r in taken.records} == {ViolationCause(Reason.TIMESTAMP_IN_FUTURE)}
    assert [(r.key, r.value) for r in taken.records] == [(f"{i}".encode(), bytes(i)) for i in range(0, 300, 3)]


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("flags", [0, LOG_APPEND_TIME])
@pytest.mark.parametrize("kind", list(TimestampType))
def test_quarantined_records_have_the_reasons_of_their_validation(
    compacted: bool, flags: int, kind: TimestampType
) -> None:
    """Covers times at all limits, with and without keys, set by the producer or the broker."""
    times = [NOW, -1, 0, MIN, MAX, NOW - HOUR, NOW - HOUR - 1, NOW + HOUR, NOW + HOUR + 1, NOW + MIN, NOW * 1_000_000]
    records = [Rec(time, key) for time in times for key in (b"k", None)]
    policy = TopicPolicy(kind, HOUR, HOUR, compacted, mode=Mode.QUARANTINE, dead_letters="dead")
    wide = ValidationLimits(max_record_errors=1000)
    for claimed in (-1, NOW, NOW + 2 * HOUR):
        data = batch(records, flags=flags, max_timestamp=claimed)
        submission = Submission("t", 0, memoryview(data), 9)
        verdict = validate_partition(
            submission, policy, wide, NOW, Decompressor(), DecompressionBudget(1 << 40, 1000, lambda: None)
        )
        if not isinstance(verdict, Finding):
            continue

        _, taken = verdict_and_records(data, policy)

        expected = [(bad.index, bad.timestamp, bad.reason) for bad in verdict.bad_records]
        assert [(r.index, r.timestamp, r.why.reason) for r in taken.records] == expected


def test_rehearsed_bounds_do_not_quarantine_records() -> None:
    policy = TopicPolicy(
        after_max_ms=HOUR, mode=Mode.QUARANTINE, dead_letters="dead", rehearsed=RehearsedBounds(after_max_ms=(1000,))
    )

    _, taken = verdict_and_records(batch([Rec(NOW), Rec(NOW + 5000), Rec(NOW + 2 * HOUR)]), policy)

    assert [r.index for r in taken.records] == [2]


def test_quarantine_beyond_the_memory_limit_raises_too_much() -> None:
    with pytest.raises(TooMuch):
        verdict_and_records(batch([Rec(0, b"k", bytes(10_000))]), most=10_000)


def test_quarantine_supports_only_batches_of_magic_2() -> None:
    data = memoryview(batch([Rec(0)]))

    assert can_be_quarantined(Submission("t", 0, data, 3))
    assert not can_be_quarantined(Submission("t", 0, data, 2))
    assert not can_be_quarantined(Submission("t", 0, memoryview(batch([Rec(0)], magic=1)), 9))
    assert not can_be_quarantined(Submission("t", 0, None, 9))


class KeyAndValue(InlineRule):
    """A rule about keys or about values."""

    def __init__(self, side: str) -> None:
        self.parts = Part.KEY if side == "key" else Part.VALUE
        self.is_slow = False
        self._side = side

    def fault(self, record: RuledRecord) -> str | None:
        return None if getattr(record, self._side) else "there is none"


def validated_and_taken(policy: TopicPolicy, data: bytes) -> tuple[ValidatedRequest, TakenRecords]:
    """Return the verdict on a request with one batch, and the records that go to the dead-letter topic."""
    request = ProduceRequest(bytearray(data), 9, None, -1, [TopicData("t", None, [PartitionData(0, 0, 0, len(data))])])
    budget = DecompressionBudget(1 << 40, 2, lambda: None)
    validated = validate_request(request, {}, lambda _: policy, LIMITS, lambda: NOW, Decompressor(), budget)
    again = DecompressionBudget(1 << 40, 0, lambda: None)
    bad, basis = validated.to_quarantine[0, 0], validated.basis[0, 0]
    submission = Submission("t", 0, memoryview(data), 9)
    return validated, bad_records_of(submission, bad, basis, LIMITS, Decompressor(), again, 1 << 40)


@pytest.mark.parametrize("codec", CODECS)
def test_quarantine_finds_all_records_that_violate_rules_with_the_rule_names(codec: str) -> None:
    rules = RuleSet((NamedRule("keyed", KeyAndValue("key")), NamedRule("filled", KeyAndValue("value"))))
    policy = TopicPolicy(mode=Mode.QUARANTINE, dead_letters="dead", rules=rules)
    records = [Rec(NOW, None if i % 3 == 0 else b"k", None if i % 5 == 0 else b"v") for i in range(300)]
    data = batch(records, CODECS[codec])

    validated, taken = validated_and_taken(policy, data)

    assert list(validated.rejected) == list(validated.to_quarantine) == [(0, 0)]
    assert {r.index: r.why for r in taken.records} == {
        i: ViolationCause(
            Reason.RULE_VIOLATED, (*(["keyed"] if i % 3 == 0 else []), *(["filled"] if i % 5 == 0 else []))
        )
        for i in range(300)
        if i % 3 == 0 or i % 5 == 0
    }


@pytest.mark.parametrize("codec", CODECS)
def test_copies_all_bad_records_of_a_forwarded_batch(codec: str) -> None:
    keyed = RuleSet((NamedRule("keyed", KeyAndValue("key")),))
    policy = replace(POLICY, mode=Mode.OBSERVE, rules=keyed)
    records = [Rec(NOW if i % 3 else NOW + 2 * HOUR, b"k" if i % 5 else None, b"v") for i in range(300)]
    data = batch(records, CODECS[codec])

    validated, taken = validated_and_taken(policy, data)

    assert not validated.rejected and not validated.accepted
    assert [(each.reason, each.bad_count) for each in validated.observed[0, 0]] == [
        (Reason.TIMESTAMP_IN_FUTURE, 100),
        (Reason.RULE_VIOLATED, 60),
    ]
    assert {r.index: r.why for r in taken.records} == {
        i: ViolationCause(Reason.RULE_VIOLATED if i % 3 else Reason.TIMESTAMP_IN_FUTURE, () if i % 5 else ("keyed",))
        for i in range(300)
        if i % 3 == 0 or i % 5 == 0
    }
