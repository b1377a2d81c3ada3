"""Each rule about keys, values, headers, batches and times accepts and rejects, and no message quotes content."""

from collections.abc import Sequence

import pytest

from sluicegate.validation.rules.built_in import MonotonicTime, MostRecords, Required, Size, Utf8
from sluicegate.validation.rules.headers import ForbiddenHeaders, HeaderBounds, MatchedHeader, RequiredHeaders
from sluicegate.validation.rules.rule import Client, Header, RecordRule, RuledRecord, Side

CLIENT = Client("10.0.0.1:5", "app")
SECRET = b"geheim"


def record(
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: Sequence[Header] = (),
    *,
    index: int = 0,
    time: int = 5,
    client: Client = CLIENT,
    producer_id: int = -1,
) -> RuledRecord:
    return RuledRecord("t", 3, index, time, key, value, tuple(headers), client, producer_id)


TENANT = (b"tenant", b"acme")


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (Required(Side.KEY), [record(b""), record(b"x", None)], [record(None)]),
        (Required(Side.VALUE), [record(value=b"")], [record(value=None)]),
        (Size(Side.KEY, 2, 3), [record(b"12"), record(b"123"), record(None)], [record(b"1"), record(b"1234")]),
        (Size(Side.VALUE, 1), [record(value=b"x" * 9999), record(value=None)], [record(value=b"")]),
        (Utf8(Side.KEY), [record("né€".encode()), record(None), record(b"")], [record(b"\xc0\xaf"), record(b"a\xff")]),
        (Utf8(Side.VALUE), [record(b"\xff", b"x")], [record(value=SECRET + b"\xed\xa0\x80")]),
        (RequiredHeaders(("tenant",)), [record(headers=[TENANT]), record(headers=[(b"tenant", None)])], [record()]),
        (ForbiddenHeaders(("debug",)), [record(headers=[TENANT])], [record(headers=[TENANT, (b"debug", SECRET)])]),
        (
            MatchedHeader("tenant", "/[a-z]+/"),
            [record(), record(headers=[TENANT]), record(headers=[(b"other", b"1")])],
            [record(headers=[(b"tenant", each)]) for each in (b"", b"A", None, b"\xff", b"acme1", SECRET + b"1")],
        ),
        (MatchedHeader("tenant", "a*"), [record(headers=[TENANT])], [record(headers=[TENANT, (b"tenant", b"b")])]),
        (HeaderBounds(1), [record(), record(headers=[TENANT])], [record(headers=[TENANT] * 2)]),
        (HeaderBounds(None, 10), [record(headers=[TENANT])], [record(headers=[(b"n" * 5, b"v" * 6)])]),
        (MostRecords(2), [record(index=1), record(index=3)], [record(index=2)]),
    ],
)  # fmt: skip
def test_each_content_rule_accepts_good_records_and_rejects_bad_ones(
    rule: RecordRule, good: list[RuledRecord], bad: list[RuledRecord]
) -> None:
    assert [rule.fault(each) for each in good] == [None] * len(good)
    for each in bad:
        words = rule.fault(each)
        assert words and SECRET.decode() not in words


def test_monotonic_time_rejects_earlier_timestamp_of_same_producer_and_partition() -> None:
    rule = MonotonicTime()
    assert [rule.fault(record(time=time)) for time in (5, 5, 9, -1)] == [None] * 4
    assert "4 ms before" in (rule.fault(record(time=5)) or "")
    assert rule.fault(record(time=9)) is None, "the latest time is unchanged"


def test_monotonic_time_is_tracked_for_each_producer() -> None:
    rule = MonotonicTime()
    clients = [Client("a:1", "x"), Client("a:2", "x"), Client("a:1", "y"), Client("a:1")]
    for at, client in enumerate(clients):
        assert rule.fault(record(time=100 - at, client=client)) is None
    for producer_id in (0, 1):
        assert rule.fault(record(time=50 - producer_id, producer_id=producer_id)) is None
    assert rule.fault(record(time=49, producer_id=0, client=clients[0])) is not None


def test_monotonic_time_keeps_a_bounded_number_of_producers() -> None:
    rule = MonotonicTime(most_producers=3)
    for number in range(10):
        assert rule.fault(record(time=100, producer_id=number)) is None
    assert rule.fault(record(time=1, producer_id=0)) is None
    assert rule.fault(record(time=1, producer_id=9)) is not None
