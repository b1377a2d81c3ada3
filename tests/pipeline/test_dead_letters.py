"""A row from a dead-letter topic is read as the dead letter that the proxy wrote."""

import pytest

from sluicegate.pipeline.jobs.replay.dead_letter import DeadLetter, NoDeadLetter, dead_letter, encode_headers
from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.protocol.records.contents import TakenRecord
from sluicegate.proxy.responses.dispatch import DeadLetters
from sluicegate.proxy.session.client.client_details import ClientDetails
from sluicegate.proxy.writing.dead_letter_writer import headers_of
from sluicegate.validation.dispositions.quarantine import ViolationCause, pack_headers
from sluicegate.validation.verdict import Reason

OF = TopicPartition("dead", 2)
WHO = ClientDetails("192.0.2.1:5", "billing", None, None, None)
Headers = list[tuple[bytes, bytes | None]]
LATE = ViolationCause(Reason.TIMESTAMP_IN_FUTURE)


def never_yield() -> None:
    """Do nothing, because no other work waits."""


def forged_headers(*headers: tuple[bytes, bytes | None]) -> bytes:
    return pack_headers(headers, never_yield)


def letter_headers(own: Headers, reason: ViolationCause = LATE) -> Headers:
    """Return the headers of a dead letter as the proxy writes them."""
    taken = TakenRecord(7, -5, reason, b"k", b"v", own)
    written = headers_of(taken, DeadLetters((0, 0), "dead", "orders", 3), WHO, never_yield)
    return [(name.encode(), value) for name, value in written]


def read(headers: Headers) -> DeadLetter:
    return dead_letter(OF, 40, b"k", b"v", [{"key": name, "value": value} for name, value in headers])


def test_a_dead_letter_has_the_producers_record_and_its_destination() -> None:
    found = read(letter_headers([(b"a", b"1"), (b"a", None), (b"sluicegate.origin", b"x/0/1")]))

    assert (found.topic, found.partition, found.reason, found.rules) == ("orders", 3, "timestamp_in_future", ())
    assert (found.record.timestamp, found.record.key, found.record.value) == (-5, b"k", b"v")
    assert found.record.headers == (("a", b"1"), ("a", None), ("sluicegate.origin", b"x/0/1"))
    assert dict(found.proxy_headers)["sluicegate.client.id"] == b"billing"
    assert found.place == "dead-2 offset 40 (for orders-3)"


def test_a_dead_letter_names_the_rules_that_it_breaks() -> None:
    assert read(letter_headers([], ViolationCause(Reason.RULE_VIOLATED, ("keyed", "tenant")))).rules == (
        "keyed",
        "tenant",
    )


def test_record_quarantined_twice_is_parsed_by_its_second_headers() -> None:
    once = letter_headers([(b"a", b"1")])

    found = read(letter_headers(once, ViolationCause(Reason.RULE_VIOLATED, ("keyed",))))

    assert [(name.encode(), value) for name, value in found.record.headers] == once
    assert (found.reason, found.rules) == ("rule_violated", ("keyed",))


def test_headers_added_after_the_quarantine_belong_to_the_record() -> None:
    found = read([*letter_headers([(b"a", b"1")]), (b"mirrored", b"yes")])

    assert found.record.headers == (("a", b"1"), ("mirrored", b"yes"))


ODD: Headers = [(b"\xff\xfe", b"1"), (b"a\0b", None), (b"\xed\xa0\x80", b""), (b"\\xff", b"2"), ("é".encode(), b"3")]


def test_header_names_that_are_not_text_are_restored_unchanged() -> None:
    found = read([*letter_headers(ODD), (b"mirrored\xff", b"yes")])

    assert encode_headers(found.record.headers) == (*ODD, (b"mirrored\xff", b"yes"))
    assert [name for name, _ in found.proxy_headers][:2] == ["sluicegate.headers", "sluicegate.reason"]
    assert encode_headers(read([*ODD, *letter_headers([])]).record.headers) == tuple(ODD)


def test_a_record_quarantined_twice_keeps_the_headers_of_the_first_time() -> None:
    once = letter_headers(ODD)

    assert encode_headers(read(letter_headers(once)).record.headers) == tuple(once)


@pytest.mark.parametrize(
    "value", [b"no headers", forged_headers((b"\xff", b"other")), forged_headers((b"h", b"1")), forged_headers()]
)
def test_a_producers_own_sluicegate_headers_are_kept(value: bytes) -> None:
    own: Headers = [(b"\\xff", b"1"), (b"sluicegate.headers", value)]

    assert encode_headers(read(letter_headers(own)).record.headers) == tuple(own)


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ([], "the header sluicegate.timestamp is missing"),
        ([(b"sluicegate.reason", b"x"), (b"sluicegate.timestamp", b"7")], "the header sluicegate.topic is missing"),
        (
            [(b"sluicegate.reason", b"x"), (b"sluicegate.timestamp", b"soon")],
            "sluicegate.timestamp is not a number",
        ),
        (
            [(b"sluicegate.reason", b"x"), (b"sluicegate.timestamp", b"9" * 19)],
            "sluicegate.timestamp is not a 64-bit integer",
        ),
    ],
)
def test_record_without_dead_letter_headers_is_rejected_with_reason(headers: Headers, reason: str) -> None:
    with pytest.raises(NoDeadLetter, match=reason):
        read(headers)
