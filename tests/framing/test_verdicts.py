"""Each value of `framing` works on both paths, with every policy that affects it."""

from dataclasses import replace

import pytest

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.proxy.fastpath.paths import HAS_FAST_PATH
from sluicegate.validation.outcome import Waiver
from sluicegate.validation.policy import Framing, RehearsedBounds, TimeFix, TopicPolicy, ValidationLimits
from sluicegate.validation.produce.request import validate_request
from sluicegate.validation.rules.json.syntax import JsonSyntax
from sluicegate.validation.rules.rule import Mode, NamedRule, Side
from sluicegate.validation.rules.rule_set import RuleSet
from sluicegate.validation.validated_request import ValidatedRequest
from sluicegate.validation.verdict import Reason
from tests.bounds.frames import request_header, sized_produce_request
from tests.framing.cases import AMBIGUOUS, HONEST, SECONDS_AGO, UNREADABLE, batch_builder, smuggled_record
from tests.two_paths.both import BothPaths
from tests.wire.batches import LZ4
from tests.wire.raw_client import produce_body, topic_data

NOW = 1_800_000_000_123
HOUR = 3_600_000
PLACE = (0, 0)
SAFE, STRICT, BROKER = (TopicPolicy(framing=framing) for framing in (Framing.SAFE, Framing.STRICT, Framing.BROKER))
OBSERVED_RULE = RuleSet([NamedRule("json", JsonSyntax(Side.VALUE), Mode.OBSERVE)])


def validate_batch(data: bytes, policy: TopicPolicy, most_piece_bytes: int = 1 << 20) -> ValidatedRequest:
    body = bytearray(produce_body(9, [topic_data("t", (0, data))]))
    request = walk_produce_request(body, 9, 0, 10)
    budget = DecompressionBudget(1 << 30, 1000, lambda: None)
    decompressor = Decompressor(most_piece_bytes)
    return validate_request(request, {}, lambda _: policy, ValidationLimits(), lambda: NOW, decompressor, budget)


@pytest.mark.parametrize("most_piece_bytes", [1, 7, 1 << 20])
@pytest.mark.parametrize("policy", [SAFE, STRICT], ids=["safe", "strict"])
@pytest.mark.parametrize("case", AMBIGUOUS)
def test_an_ambiguous_batch_is_rejected_and_its_first_record_is_named(
    case: str, policy: TopicPolicy, most_piece_bytes: int
) -> None:
    rejected = validate_batch(AMBIGUOUS[case](NOW), policy, most_piece_bytes).rejected[PLACE]

    assert (rejected.code, rejected.reason) == (ErrorCode.INVALID_RECORD, Reason.AMBIGUOUS_FRAMING)
    assert rejected.message is not None and "framing: safe" in rejected.message
    if "block" in case:
        assert "empty raw block" in rejected.message
    else:
        assert f"Record {1 if 'offset deltas' in case else 0} of the batch for t-0" in rejected.message


def test_the_error_message_has_the_stated_and_the_real_length() -> None:
    message = validate_batch(AMBIGUOUS["a length +5, gzip"](NOW), SAFE).rejected[PLACE].message

    assert message is not None and "has a length field of 17 bytes, but its fields end after 12" in message


@pytest.mark.parametrize("case", UNREADABLE)
def test_an_unreadable_batch_is_forwarded_and_reported(case: str) -> None:
    found = validate_batch(UNREADABLE[case](NOW), SAFE)

    assert found.accepted[PLACE].records == 2 and not found.rejected and not found.observed
    assert (found.unreadable[PLACE].code, found.unreadable[PLACE].reason) == (
        ErrorCode.INVALID_RECORD,
        Reason.UNREADABLE_FRAMING,
    )
    assert found.unreadable[PLACE].records == 2 and found.basis[PLACE].policy is SAFE


@pytest.mark.parametrize("case", UNREADABLE)
def test_framing_strict_rejects_an_unreadable_batch(case: str) -> None:
    rejected = validate_batch(UNREADABLE[case](NOW), STRICT).rejected[PLACE]

    assert (rejected.code, rejected.reason) == (ErrorCode.INVALID_RECORD, Reason.UNREADABLE_FRAMING)


@pytest.mark.parametrize("case", {**AMBIGUOUS, **UNREADABLE})
def test_framing_broker_accepts_every_batch(case: str) -> None:
    found = validate_batch({**AMBIGUOUS, **UNREADABLE}[case](NOW), BROKER)

    assert found.accepted[PLACE].records == 2 and not found.unreadable


@pytest.mark.parametrize("case", HONEST)
def test_every_framing_value_accepts_batches_of_every_encoder(case: str) -> None:
    for policy in (SAFE, STRICT, BROKER):
        found = validate_batch(HONEST[case](NOW), policy)
        assert found.accepted[PLACE].records == 2 and not found.unreadable


@pytest.mark.skipif(not HAS_FAST_PATH, reason="there is no fast path: it was not compiled")
@pytest.mark.parametrize("rules", [None, OBSERVED_RULE], ids=["no rules", "a rule"])
@pytest.mark.parametrize("case", {**AMBIGUOUS, **UNREADABLE, **HONEST})
def test_the_fast_path_agrees_with_the_slow_path(case: str, rules: RuleSet | None) -> None:
    data = {**AMBIGUOUS, **UNREADABLE, **HONEST}[case](NOW)
    for policy in (SAFE, STRICT, BROKER):
        paths = BothPaths({"t": replace(policy, rules=rules)}, {}, ValidationLimits())
        frame = bytearray(sized_produce_request(9, {b"t": [(0, data)]})[4:])
        is_good = paths.validate(frame, 9, len(request_header(0, 9)), NOW)
        if rules is None and "gzip" not in case:  # isal hands some of these to the slow path
            assert is_good == (policy is BROKER or case in HONEST)


def test_an_observed_topic_forwards_ambiguous_batches() -> None:
    found = validate_batch(batch_builder(smuggled_record(), LZ4)(NOW), TopicPolicy(mode=Mode.OBSERVE))

    assert found.observed[PLACE][0].reason is Reason.AMBIGUOUS_FRAMING and not found.rejected


def test_a_batch_on_an_unchecked_topic_is_forwarded_unvalidated() -> None:
    found = validate_batch(batch_builder(smuggled_record(), LZ4)(NOW), TopicPolicy(checked=False))

    assert found.waived == {PLACE: Waiver.CHECKS_NONE} and not found.rejected and not found.observed


@pytest.mark.parametrize("fix", TimeFix)
@pytest.mark.parametrize("case", {**AMBIGUOUS, **UNREADABLE})
def test_a_batch_with_a_wrong_encoding_is_not_fixed(case: str, fix: TimeFix) -> None:
    policy = TopicPolicy(before_max_ms=HOUR, fix=fix)
    data = {**AMBIGUOUS, **UNREADABLE}[case](NOW - SECONDS_AGO * 1000)

    found = validate_batch(data, policy)

    assert PLACE in found.rejected and not found.fixed
    assert found.rejected[PLACE].reason is (Reason.AMBIGUOUS_FRAMING if case in AMBIGUOUS else Reason.TIMESTAMP_TOO_OLD)


def test_an_ambiguous_batch_is_not_quarantined() -> None:
    policy = TopicPolicy(before_max_ms=HOUR, mode=Mode.QUARANTINE, dead_letters="dead")

    found = validate_batch(batch_builder(smuggled_record(), LZ4)(NOW - SECONDS_AGO * 1000), policy)

    assert found.rejected[PLACE].reason is Reason.AMBIGUOUS_FRAMING and not found.to_quarantine


def test_rehearsed_bounds_count_only_forwarded_batches() -> None:
    policy = TopicPolicy(rehearsed=RehearsedBounds(before_max_ms=(HOUR,)))
    old = NOW - SECONDS_AGO * 1000

    assert not validate_batch(batch_builder(smuggled_record(), LZ4)(old), policy).rehearsed
    found = validate_batch(UNREADABLE["trailing bytes, lz4"](old), policy)
    assert found.rehearsed[PLACE] == (2,) and PLACE in found.unreadable


def test_an_observed_rule_does_not_hide_an_unreadable_batch() -> None:
    found = validate_batch(UNREADABLE["trailing bytes, lz4"](NOW), TopicPolicy(rules=OBSERVED_RULE))

    assert found.observed[PLACE][0].reason is Reason.RULE_VIOLATED
    assert found.unreadable[PLACE].reason is Reason.UNREADABLE_FRAMING
