"""A whole request is validated: the right partitions, with their topics' rules."""

import pytest

from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.validation.outcome import Waiver
from sluicegate.validation.policy import RehearsedBounds, TopicPolicy, ValidationLimits
from sluicegate.validation.produce.request import validate_request
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.validated_request import ValidatedRequest, ValidationBasis
from sluicegate.validation.verdict import Reason
from tests.wire.batches import CODECS, Rec, batch
from tests.wire.raw_client import produce_body, topic_data

NOW = 1_800_000_000_000
BOUNDED = TopicPolicy(before_max_ms=1000)
UNCHECKED = TopicPolicy(before_max_ms=1000, checked=False)
BAD = batch([Rec(1)])


def validate_partitions(policies: dict[str, TopicPolicy], version: int, *partitions: bytes) -> ValidatedRequest:
    topics = [topic_data(name, *enumerate(partitions)) for name in policies]
    request = walk_produce_request(bytearray(produce_body(version, topics)), version, 0, 100)
    budget = DecompressionBudget(1 << 20, 1000, lambda: None)
    return validate_request(request, {}, policies.__getitem__, ValidationLimits(), lambda: NOW, Decompressor(), budget)


@pytest.mark.parametrize("version", [3, 8, 12])
def test_batches_of_unchecked_topics_are_neither_accepted_nor_rejected(version: int) -> None:
    found = validate_partitions({"free": UNCHECKED, "bounded": BOUNDED}, version, BAD, batch([Rec(NOW)]))

    assert found.waived == dict.fromkeys([(0, 0), (0, 1)], Waiver.CHECKS_NONE)
    assert set(found.rejected) == {(1, 0)}
    assert set(found.accepted) == {(1, 1)}


def test_request_level_error_rejects_batches_of_unchecked_topics() -> None:
    """A broker checks the heads of all batches first, so the forwarded request would fail as a whole."""
    no_magic = BAD[:16] + b"\x07" + BAD[17:]

    found = validate_partitions({"free": UNCHECKED}, 8, no_magic)

    assert {place: rejected.reason for place, rejected in found.rejected.items()} == {(0, 0): Reason.UNSUPPORTED_MAGIC}


OBSERVED = TopicPolicy(before_max_ms=1000, mode=Mode.OBSERVE)


def test_an_observed_topic_reports_violations_and_rejects_none() -> None:
    found = validate_partitions({"seen": OBSERVED, "bounded": BOUNDED}, 8, BAD, batch([Rec(NOW)]))

    assert set(found.observed) == {(0, 0)}
    assert found.observed[0, 0][0].bad_count == 1
    assert set(found.rejected) == {(1, 0)}
    assert set(found.accepted) == {(0, 1), (1, 1)}
    assert found.basis[0, 0] == ValidationBasis(OBSERVED, NOW)


def test_observed_record_errors_do_not_displace_errors_of_rejected_records() -> None:
    many = batch([Rec(1)] * 800)

    found = validate_partitions({"seen": OBSERVED, "bounded": BOUNDED}, 8, many)

    assert len(found.observed[0, 0][0].bad_records) == len(found.rejected[1, 0].bad_records) == 800


@pytest.mark.parametrize("codec", list(CODECS.values()))
def test_violations_of_rehearsed_bounds_are_counted_but_not_rejected(codec: int) -> None:
    tried = TopicPolicy(before_max_ms=1000, rehearsed=RehearsedBounds((10, 500), (0, 60)))
    records = [Rec(NOW + ahead, headers=[(b"h", b"v")] * (ahead % 2)) for ahead in (-600, -11, -10, 0, 1, 60, 61)]

    found = validate_partitions(
        {"tried": tried}, 8, batch(records, codec), batch(records[2:4], codec), batch([Rec(1)], codec)
    )

    assert found.rehearsed == {(0, 0): (2, 1, 3, 1), (0, 2): (1, 1, 0, 0)}
    assert (set(found.accepted), set(found.rejected)) == ({(0, 0), (0, 1)}, {(0, 2)})
    assert found.accepted[0, 0].ahead_ms == 61


def test_rehearsed_bounds_may_be_wider_than_those_in_force() -> None:
    tried = TopicPolicy(after_max_ms=100, rehearsed=RehearsedBounds(after_max_ms=(1000,)))

    found = validate_partitions({"tried": tried}, 8, batch([Rec(NOW + 100), Rec(NOW + 500), Rec(NOW + 5000)]))

    assert found.rehearsed == {(0, 0): (1,)}
    assert found.rejected[0, 0].bad_count == 2


def test_malformed_batches_do_not_count_for_rehearsed_bounds() -> None:
    tried = TopicPolicy(rehearsed=RehearsedBounds(after_max_ms=(10,)))

    found = validate_partitions(
        {"tried": tried}, 8, batch([Rec(NOW + 50), Rec(NOW + 50)], count=3, last_offset_delta=2)
    )

    assert found.rehearsed == {}
    assert found.rejected[0, 0].reason is Reason.RECORD_FORMAT
