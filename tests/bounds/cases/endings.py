"""Connections that must end: closes that wait for readers, and invalid bytes from clients and brokers."""

import random

from tests.bounds import hostile_batches as hostile
from tests.bounds.case import Case, CaseSize, ExpectedEnd, send_one_piece
from tests.bounds.forged_responses import FORGED_RESPONSES
from tests.bounds.frames import (
    compact_string,
    good_batch,
    incomplete_frame,
    int16,
    short_string,
    sized_frame,
    sized_produce_request,
    sized_request,
)
from tests.bounds.stand_in_responses import topic_id_of
from tests.wire.batches import NONE

_SHORT = {"limits": {"frame_timeout_seconds": 1.5, "idle_timeout_seconds": 4}}


def _questions() -> list[bytes]:
    """Return one request of each API with a response that the proxy reads, and of some that it forwards unread."""
    good, bad = good_batch(hostile.now()), hostile.bad_records(NONE, 3)
    no_tags = b"\0"
    return [
        sized_request(18, 0, b""),
        sized_request(18, 3, compact_string(b"s") + compact_string(b"1") + no_tags),
        sized_request(3, 1, b"\xff\xff\xff\xff"),
        sized_request(3, 12, b"\2" + bytes(16) + compact_string(b"attacked") + no_tags + b"\1\0\0"),
        sized_request(10, 1, short_string(b"group") + b"\0"),
        sized_request(10, 4, b"\0\2" + compact_string(b"group") + no_tags),
        sized_request(60, 0, b"\0\0"),
        sized_request(17, 1, short_string(b"PLAIN")),
        sized_request(17, 1, short_string(b"PLAIN"))
        + sized_request(36, 2, compact_string(b"\0alice\0secret") + no_tags),
        sized_produce_request(3, {b"attacked": [(0, good)]}),
        sized_produce_request(3, {b"attacked": [(0, good), (1, bad)]}),
        sized_produce_request(8, {b"attacked": [(0, bad)]}),
        sized_produce_request(9, {b"attacked": [(0, good), (1, bad)]}),
        sized_produce_request(11, {b"attacked": [(0, good)]}),
        sized_produce_request(12, {b"attacked": [(0, bad)]}),
        sized_produce_request(13, {topic_id_of("attacked"): [(0, good), (1, bad)]}),
        sized_request(1, 11, b"\xff" * 4 + b"\0" * 30),
        sized_request(22, 4, b"\0" * 16),
        sized_request(78, 1, b"\0\0" + b"\0" * 20),
    ]


def _each_question(_amount: int, number: int) -> list[bytes]:
    questions = _questions()
    return [questions[number % len(questions)]]


_SHORT_FORGERIES = {
    "random bytes",
    "text that is no UTF-8",
    "counts of 2^31",
    "half a response",
    "100 MB announced",
    "a varint without an end after the header",
    "a million tags",
    "a host a..b",
}


def _forgery(name: str) -> Case:
    return Case(
        f"a broker responds with {name}",
        _each_question,
        CaseSize(connections=len(_questions()), seconds=8),
        ends=ExpectedEnd.RESPONDED_OR_CLOSED,
        config=_SHORT,
        broker=f"forged: {name}",
        held=60_000_000 if "60 MB" in name else 20_000_000,
        only_thorough=name not in _SHORT_FORGERIES,
    )


def _unread_then_garbage(amount: int, number: int) -> list[bytes]:
    """Requests without a reader for their responses, more on each connection; then garbage."""
    return [sized_request(18, 2, b"") * (number * amount), b"\x7f" * 64]


def _garbage(amount: int, number: int) -> list[bytes]:
    return [random.Random(number).randbytes(amount)]


ENDINGS = [
    Case(
        "100 clients that read nothing and send garbage after their requests",
        _unread_then_garbage,
        CaseSize(15, connections=100, seconds=14),
        CaseSize(60, connections=100, seconds=40),
        ends=ExpectedEnd.GONE,
        reads=False,
        pause_seconds=1.0,
        config=_SHORT,
        held=2_000_000,
        long=True,
    ),
    Case(
        "clients that read nothing and send garbage, over TLS",
        _unread_then_garbage,
        CaseSize(15, connections=30, seconds=14),
        CaseSize(60, connections=30, seconds=40),
        ends=ExpectedEnd.GONE,
        reads=False,
        pause_seconds=1.0,
        config=_SHORT,
        tls=True,
        held=2_000_000,
        long=True,
    ),
    Case(
        "100 clients that read no responses, a rejection after acks=0",
        lambda n, i: [
            sized_request(18, 2, b"") * (n * i),
            sized_produce_request(9, {b"attacked": [(0, hostile.bad_records(NONE, 1))]}, 0),
        ],
        CaseSize(15, connections=60, seconds=14),
        CaseSize(60, connections=60, seconds=40),
        ends=ExpectedEnd.GONE,
        reads=False,
        pause_seconds=1.0,
        config=_SHORT,
        held=2_000_000,
        long=True,
    ),
    Case(
        "random bytes, 10 kB on each of 200 connections",
        _garbage,
        CaseSize(10_000, connections=200, seconds=10),
        CaseSize(10_000, connections=2_000, seconds=20),
        ends=ExpectedEnd.CLOSED,
        config=_SHORT,
    ),
    Case(
        "frames of random bytes with a Produce head",
        lambda n, i: [sized_frame(b"\0\0" + int16(i % 14) + random.Random(i).randbytes(n))],
        CaseSize(10_000, connections=200, seconds=10),
        ends=ExpectedEnd.RESPONDED_OR_CLOSED,
        config=_SHORT,
    ),
    Case(
        "unknown APIs and versions",
        lambda _n, i: [sized_frame(int16(i * 13 % 600) + int16(40 + i % 60) + b"\0" * 40)],
        CaseSize(connections=100, seconds=10),
        config=_SHORT,
    ),
    Case(
        "HTTP on a Kafka port", send_one_piece(lambda _: b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"), CaseSize(connections=20)
    ),
    Case(
        "a negative size, and a size of 2 GB",
        lambda _n, i: [incomplete_frame(-1 if i % 2 else 2**31 - 1, b"\0" * 20)],
        CaseSize(connections=20),
        ends=ExpectedEnd.CLOSED,
    ),
    *(_forgery(name) for name in FORGED_RESPONSES),
    Case(
        "a broker sends unrequested bytes",
        _each_question,
        CaseSize(connections=len(_questions()), seconds=8),
        config=_SHORT,
        broker="spills",
    ),
    Case(
        "a broker names its host a..b, then others connect",
        lambda _n, i: [_questions()[3] if i == 0 else sized_request(18, 2, b"")],
        CaseSize(connections=20, seconds=12),
        config=_SHORT,
        broker="forged to 3: a host a..b",
        stagger_seconds=0.1,
    ),
    Case(
        "a broker names a host with a label of 70, then others connect",
        lambda _n, i: [_questions()[3] if i == 0 else sized_request(18, 2, b"")],
        CaseSize(connections=20, seconds=12),
        config=_SHORT,
        broker="forged to 3: a host with a label of 70",
        only_thorough=True,
        stagger_seconds=0.1,
    ),
]
