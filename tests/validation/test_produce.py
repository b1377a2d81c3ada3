"""A whole request's judgement: which partitions are judged at all, and by whose rules."""

import pytest

from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.records.allowance import Allowance
from sluicegate.protocol.records.compression import Decompressor
from sluicegate.validation.policy import JudgementLimits, TopicPolicy
from sluicegate.validation.produce import JudgedRequest, judge_request
from sluicegate.validation.verdict import Reason
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import produce_body, topic_data

NOW = 1_800_000_000_000
BOUNDED = TopicPolicy(before_max_ms=1000)
UNCHECKED = TopicPolicy(before_max_ms=1000, checked=False)
BAD = batch([Rec(1)])


def judged(policies: dict[str, TopicPolicy], version: int, *partitions: bytes) -> JudgedRequest:
    topics = [topic_data(name, *enumerate(partitions)) for name in policies]
    request = walk_produce_request(bytearray(produce_body(version, topics)), version, 0, 100)
    allowance = Allowance(1 << 20, 1000, lambda: None)
    return judge_request(request, {}, policies.__getitem__, JudgementLimits(), lambda: NOW, Decompressor(), allowance)


@pytest.mark.parametrize("version", [3, 8, 12])
def test_an_unchecked_topics_batches_are_neither_accepted_nor_refused(version: int) -> None:
    found = judged({"free": UNCHECKED, "bounded": BOUNDED}, version, BAD, batch([Rec(NOW)]))

    assert found.unchecked == 2
    assert set(found.refused) == {(1, 0)}
    assert set(found.accepted) == {(1, 1)}


def test_what_breaks_a_whole_request_breaks_it_for_unchecked_topics_too() -> None:
    """A broker looks at all batches' heads before anything else: forwarded as it is, nobody could be answered."""
    no_magic = BAD[:16] + b"\x07" + BAD[17:]

    found = judged({"free": UNCHECKED}, 8, no_magic)

    assert {place: refused.reason for place, refused in found.refused.items()} == {(0, 0): Reason.MAGIC}
