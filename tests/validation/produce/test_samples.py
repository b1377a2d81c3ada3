"""Samples contain the beginnings of bad records, only for topics with samples, and only as many as configured."""

import pytest

from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, OutOfTime
from sluicegate.validation.policy import TimeFix, TopicPolicy, ValidationLimits
from sluicegate.validation.produce.request import validate_request
from sluicegate.validation.rules.built_in import Required
from sluicegate.validation.rules.rule import Mode, NamedRule, Side
from sluicegate.validation.rules.rule_set import RuleSet
from sluicegate.validation.validated_request import ValidatedRequest
from sluicegate.validation.verdict import Beginning, Finding, RecordSample
from tests.wire.batches import CODECS, GZIP, LZ4, NONE, Rec, batch, message, wrapper
from tests.wire.raw_client import produce_body, topic_data

NOW = 1_800_000_000_000
SHOWN = TopicPolicy(before_max_ms=1000, samples=True)


def validate_partitions(
    policy: TopicPolicy, *partitions: bytes, version: int = 8, most: int = 10, at_once: int = 1 << 62
) -> ValidatedRequest:
    body = produce_body(version, [topic_data("t", *enumerate(partitions))])
    request = walk_produce_request(bytearray(body), version, 0, 20_000)
    limits, budget = ValidationLimits(max_samples=most), DecompressionBudget(1 << 26, 1000, lambda: None, at_once)
    return validate_request(request, {}, lambda _: policy, limits, lambda: NOW, Decompressor(), budget)


def samples_by_index(rejected: Finding) -> dict[int, RecordSample | None]:
    return {bad.index: bad.contents for bad in rejected.bad_records}


def whole_sample(data: bytes) -> Beginning:
    return Beginning(data, len(data))


@pytest.mark.parametrize("codec", list(CODECS.values()))
def test_samples_contain_the_beginning_and_size_of_key_and_value(codec: int) -> None:
    long = bytes(i % 251 for i in range(300_000))
    records = [
        Rec(NOW, b"good", b"good"),
        Rec(1, b"k", long, [(b"h", b"x")]),
        Rec(2, None, b""),
        Rec(NOW),
        Rec(3, long, None),
    ]

    found = validate_partitions(SHOWN, batch(records, codec))

    assert samples_by_index(found.rejected[0, 0]) == {
        1: RecordSample(whole_sample(b"k"), Beginning(long[:256], 300_000)),
        2: RecordSample(None, whole_sample(b"")),
        4: RecordSample(Beginning(long[:256], 300_000), None),
    }


def test_limits_the_number_of_samples_per_batch() -> None:
    found = validate_partitions(SHOWN, batch([Rec(1, b"%d" % i) for i in range(50)], LZ4), most=2)

    bad = found.rejected[0, 0].bad_records
    assert [one.contents and one.contents.key for one in bad] == [whole_sample(b"0"), whole_sample(b"1"), *[None] * 48]
    assert len(bad) == 50


def test_limits_the_number_of_samples_per_request() -> None:
    found = validate_partitions(SHOWN, *[batch([Rec(1)] * 3)] * 400, most=3)

    assert sum(one.contents is not None for each in found.rejected.values() for one in each.bad_records) == 1000


@pytest.mark.parametrize(
    "policy", [TopicPolicy(before_max_ms=1000), TopicPolicy(before_max_ms=1000, mode=Mode.OBSERVE, rules=RuleSet(()))]
)
def test_topics_without_samples_configured_record_no_samples(policy: TopicPolicy) -> None:
    found = validate_partitions(policy, batch([Rec(1)]))

    shown_ones = (*found.rejected.values(), *(each for (each,) in found.observed.values()))
    assert [samples_by_index(each) for each in shown_ones] == [{0: None}]


def test_takes_no_sample_if_no_event_is_written() -> None:
    assert samples_by_index(validate_partitions(SHOWN, batch([Rec(1)]), most=0).rejected[0, 0]) == {0: None}


def test_samples_show_observed_fixed_and_rejected_records() -> None:
    keyed = RuleSet([NamedRule("keyed", Required(Side.KEY)), NamedRule("some", Required(Side.VALUE), Mode.OBSERVE)])
    data = batch([Rec(NOW), Rec(NOW, b"a", None), Rec(NOW, None, b"b")], GZIP)

    found = validate_partitions(TopicPolicy(rules=keyed, samples=True), data)
    assert samples_by_index(found.rejected[0, 0]) == {2: RecordSample(None, whole_sample(b"b"))}
    assert samples_by_index(found.observed[0, 0][0]) == {1: RecordSample(whole_sample(b"a"), None)}

    found = validate_partitions(TopicPolicy(before_max_ms=1000, mode=Mode.OBSERVE, samples=True), batch([Rec(1, b"o")]))
    assert samples_by_index(found.observed[0, 0][0]) == {0: RecordSample(whole_sample(b"o"), whole_sample(b"v"))}

    found = validate_partitions(TopicPolicy(before_max_ms=1000, fix=TimeFix.NOW, samples=True), batch([Rec(1, b"f")]))
    assert samples_by_index(found.fixed[0, 0].finding) == {0: RecordSample(whole_sample(b"f"), whole_sample(b"v"))}


def test_whole_batch_rejections_and_old_messages_have_no_samples() -> None:
    found = validate_partitions(SHOWN, batch([Rec(1)], crc=5), batch([Rec(1)], count=3, last_offset_delta=0))
    assert [each.bad_records for each in found.rejected.values()] == [(), ()]

    plain = message(1, b"v", timestamp=1)
    old = validate_partitions(SHOWN, plain, wrapper(1, [plain], GZIP, timestamp=1), version=2)
    assert [samples_by_index(each) for each in old.rejected.values()] == [{0: None}] * 2


def test_samples_of_large_values_are_taken_on_the_event_loop() -> None:
    """A sample copies only the beginning of a value, which takes little time."""
    data = batch([Rec(1, b"k", bytes(200_000))], NONE)
    try:
        found = validate_partitions(SHOWN, data, at_once=64 * 1024)
    except OutOfTime:
        pytest.fail("a sample is small")
    contents = samples_by_index(found.rejected[0, 0])[0]
    assert contents is not None and contents.value == Beginning(bytes(256), 200_000)
