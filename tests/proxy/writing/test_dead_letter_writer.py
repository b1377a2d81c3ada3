"""The headers of a dead letter are the record's own headers, followed by the proxy's."""

import gc
import time
import tracemalloc

import pytest

from sluicegate.protocol.records.columns import read_headers
from sluicegate.protocol.records.contents import TakenRecord
from sluicegate.proxy.responses.dispatch import DeadLetters
from sluicegate.proxy.session.client.client_details import ClientDetails
from sluicegate.proxy.writing.dead_letter_writer import headers_of
from sluicegate.validation.dispositions.quarantine import DeadLetterHeader, ViolationCause
from sluicegate.validation.verdict import Reason

LETTERS = DeadLetters((0, 0), "dead", "payments", 3)
NOBODY = ClientDetails("192.0.2.1:5", None, None, None, None)


def do_not_yield() -> None:
    """Nobody waits."""


def headers_of_letter(
    headers: list[tuple[bytes, bytes | None]], client: ClientDetails = NOBODY
) -> list[tuple[str, bytes | None]]:
    return headers_of(
        TakenRecord(7, -5, ViolationCause(Reason.NULL_KEY), None, None, headers), LETTERS, client, do_not_yield
    )


def test_dead_letter_headers_have_the_violation_and_the_client() -> None:
    found = dict(headers_of_letter([], ClientDetails("192.0.2.1:5", "billing", "librdkafka", "2.1", "User:ä\ud800")))

    del found["sluicegate.version"]
    assert found == {
        "sluicegate.reason": b"null_key",
        "sluicegate.topic": b"payments",
        "sluicegate.partition": b"3",
        "sluicegate.index": b"7",
        "sluicegate.timestamp": b"-5",
        "sluicegate.client.id": b"billing",
        "sluicegate.software": b"librdkafka 2.1",
        "sluicegate.principal": "User:ä?".encode(),
        "sluicegate.client.address": b"192.0.2.1:5",
    }


def test_unknown_client_details_have_no_header() -> None:
    names = [name for name, _ in headers_of_letter([])]

    absent = {"sluicegate.client.id", "sluicegate.software", "sluicegate.principal", "sluicegate.headers"}
    assert not absent & set(names)


def test_headers_of_the_record_precede_headers_of_the_proxy() -> None:
    found = headers_of_letter([(b"sluicegate.reason", b"before"), (b"x", None), (b"x", b"")])

    assert found[:3] == [("sluicegate.reason", b"before"), ("x", None), ("x", b"")]
    assert [value for name, value in found if name == "sluicegate.reason"][-1] == Reason.NULL_KEY.value.encode()


def test_header_names_that_are_not_text_are_preserved() -> None:
    own = [(b"\xff", b"1" * 300), (b"a\0b", None), ("ä".encode(), b"")]

    found = headers_of_letter(own)

    assert [name for name, _ in found[:3]] == ["\\xff", "a\\x00b", "ä"]
    raw = dict(found)[DeadLetterHeader.OWN]
    assert raw is not None
    assert read_headers(memoryview(raw), 0, len(raw)) == own


def test_dead_letter_headers_name_the_violated_rules() -> None:
    letter = TakenRecord(7, -5, ViolationCause(Reason.RULE_VIOLATED, ("keyed", "filled")), None, None, [])

    found = dict(headers_of(letter, LETTERS, NOBODY, do_not_yield))

    assert found["sluicegate.reason"] == Reason.RULE_VIOLATED.value.encode()
    assert found["sluicegate.rule"] == b"keyed, filled"


@pytest.mark.parametrize("name", [b"", b"name", b"\xff"])
def test_building_many_headers_yields_often_and_uses_bounded_memory(name: bytes) -> None:
    """A record of 500,000 headers that are no UTF-8 took 237 MB beside its own, and the thread did not give way."""
    letter = TakenRecord(7, -5, ViolationCause(Reason.NULL_KEY), None, None, [(name, b"")] * 50_000)
    last, longest = time.thread_time(), 0.0

    def give_way() -> None:
        nonlocal last, longest
        longest, last = max(longest, time.thread_time() - last), time.thread_time()

    gc.disable()
    headers_of(letter, LETTERS, NOBODY, give_way)
    gc.enable()
    tracemalloc.start()
    headers_of(letter, LETTERS, NOBODY, do_not_yield)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert longest < 0.02
    assert peak < 50_000 * 128
