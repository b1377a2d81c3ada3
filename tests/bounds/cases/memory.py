"""Inputs that occupy memory: frames, caches, headers, responses, names."""

import random
import string

from tests.bounds import hostile_batches as hostile
from tests.bounds.case import MIB, Case, CaseSize, ExpectedEnd, Sends
from tests.bounds.frames import (
    ProduceLayout,
    int32,
    one_large_tagged_field,
    request_header,
    short_string,
    sized_frame,
    sized_produce_request,
    sized_request,
    uvarint,
)
from tests.wire.batches import NONE, Rec, batch

_LETTERS = string.ascii_letters + string.digits


def _letters(seed: int, size: int) -> bytes:
    return "".join(random.Random(seed).choices(_LETTERS, k=8)).encode() + b"-%d-" % seed + b"n" * max(0, size - 20)


def _acks_0(amount: int, _number: int) -> list[bytes]:
    """Batches of 100 kB from an honest producer with acks=0."""
    one = sized_produce_request(9, {b"attacked": [(0, batch([Rec(hostile.now(), value=bytes(100_000))]))]}, acks=0)
    return [one] * (amount // len(one))


def _waiting(amount: int, _number: int) -> list[bytes]:
    records = batch([Rec(hostile.now(), value=bytes(100_000))])
    return [
        sized_produce_request(9, {b"attacked": [(0, records)]}, correlation_id=i) for i in range(amount // len(records))
    ]


def _requests_of_names(name_bytes: int, request_bytes: int, version: int = 9) -> Sends:
    def pieces_of_sender(amount: int, number: int) -> list[bytes]:
        count = request_bytes // (name_bytes + 10)
        return [
            sized_produce_request(
                version, {_letters((number * amount + i) * count + j, name_bytes): [(0, None)] for j in range(count)}
            )
            for i in range(amount)
        ]

    return pieces_of_sender


def _tagged_header(amount: int, _number: int) -> list[bytes]:
    body = ProduceLayout(9).body([ProduceLayout(9).topic(b"attacked", [ProduceLayout(9).partition(0, None)])])
    return [sized_frame(request_header(0, 9, tags=one_large_tagged_field(amount)) + body)]


def _client_ids(name_bytes: int) -> Sends:
    def pieces_of_sender(amount: int, number: int) -> list[bytes]:
        bad = hostile.bad_records(NONE, 1)
        ids = [_letters(number * amount + i, name_bytes) for i in range(amount)]
        return [sized_produce_request(9, {name[:name_bytes]: [(0, bad)]}, client_id=name) for name in ids]

    return pieces_of_sender


_RULES = {
    "defaults": {
        "samples": True,
        "rehearse": {"message.timestamp.after.max.ms": ["1s"]},
        "rules": [
            {"name": "keyed", "key": {"required": True}},
            {"name": "text", "value": {"utf8": True}, "mode": "observe"},
        ],
    },
    "requests": [{"name": "teams", "client_id": "team-*", "mode": "observe"}],
}


def _client_ids_that_break_rules(amount: int, number: int) -> list[bytes]:
    """Records that violate every rule and a rehearsed bound, from distinct client ids."""
    now = hostile.now()
    bad = batch([Rec(now + 5000, b"k", b"\xff" * 1000), Rec(now, None, b"v" * 1000)])
    ids = [_letters(number * amount + i, 200) for i in range(amount)]
    return [sized_produce_request(9, {b"attacked": [(0, bad)]}, client_id=name) for name in ids]


def _plain_login(name: bytes) -> bytes:
    token = b"\0" + name + b"\0secret"
    return sized_request(36, 1, int32(len(token)) + token)


def _logins(amount: int, number: int) -> list[bytes]:
    name = _letters(number, amount)
    return [sized_request(17, 1, short_string(b"PLAIN")), _plain_login(name)]


def _long_texts(amount: int, number: int) -> list[bytes]:
    """Return an ApiVersions request with a long software name."""
    name = _letters(number, amount)
    return [sized_request(18, 3, uvarint(len(name) + 1) + name + b"\2s\0", client_id=name[:30_000])]


MEMORY = [
    Case(
        "an honest producer with acks=0, batches of 100 kB",
        _acks_0,
        CaseSize(200 * MIB, seconds=30),
        CaseSize(1_100 * MIB, seconds=120),
        held=4 * MIB,
        responses_each=0,
        ends=ExpectedEnd.RESPONDED,
    ),
    Case(
        "an honest producer with acks=0, over TLS",
        _acks_0,
        CaseSize(60 * MIB, seconds=30),
        CaseSize(400 * MIB, seconds=120),
        held=4 * MIB,
        responses_each=0,
        ends=ExpectedEnd.RESPONDED,
        tls=True,
    ),
    Case(
        "acks=0 to a broker that does not read",
        _acks_0,
        CaseSize(60 * MIB, connections=4, seconds=3),
        CaseSize(60 * MIB, connections=20, seconds=10),
        held=8 * MIB,
        responses_each=0,
        ends=ExpectedEnd.STAYS,
        broker="deaf",
    ),
    Case(
        "50 producers to a broker that reads and does not respond",
        _waiting,
        CaseSize(10 * MIB, connections=20, seconds=5),
        CaseSize(60 * MIB, connections=50, seconds=20),
        held=16 * MIB,
        ends=ExpectedEnd.STAYS,
        broker="silent to 0",
    ),
    Case(
        "50 producers to a broker that does not read",
        _waiting,
        CaseSize(10 * MIB, connections=20, seconds=5),
        CaseSize(60 * MIB, connections=50, seconds=20),
        held=16 * MIB,
        ends=ExpectedEnd.STAYS,
        broker="deaf",
        long=True,
    ),
    Case(
        "100 requests of 5 MB of long topic names",
        _requests_of_names(20_000, 5_000_000),
        CaseSize(10, seconds=20),
        CaseSize(100, seconds=90),
        held=10_000_000,
    ),
    Case(
        "100 requests of 2 MB of possible topic names",
        _requests_of_names(200, 2_000_000),
        CaseSize(10, seconds=20),
        CaseSize(100, seconds=90),
        held=4_000_000,
    ),
    Case(
        "20 MB of tags in a Produce header, on 60 connections, one after the other",
        _tagged_header,
        CaseSize(4_000_000, connections=40, seconds=10),
        CaseSize(20_000_000, connections=60, seconds=30),
        held=12_000_000,
        ends=ExpectedEnd.STAYS,
        stagger_seconds=0.15,
        long=True,
    ),
    Case(
        "endless ApiVersions, responses never read",
        lambda n, _i: [sized_request(18, 2, b"") * 1000] * (n // 21_000),
        CaseSize(8_000_000, connections=2, seconds=6),
        CaseSize(81_000_000, connections=1, seconds=30),
        held=1 * MIB,
        reads=False,
        ends=ExpectedEnd.STAYS,
    ),
    Case(
        "endless ApiVersions of an unknown version, responses never read",
        lambda n, _i: [sized_request(18, 90, b"") * 1000] * (n // 21_000),
        CaseSize(8_000_000, connections=2, seconds=6),
        CaseSize(81_000_000, connections=1, seconds=30),
        held=1 * MIB,
        reads=False,
        ends=ExpectedEnd.STAYS,
        long=True,
    ),
    Case(
        "endless Metadata, responses never read",
        lambda n, _i: [sized_request(3, 9, b"\1\1\0\0\0") * 1000] * (n // 25_000),
        CaseSize(8_000_000, connections=2, seconds=6),
        CaseSize(81_000_000, connections=1, seconds=30),
        held=1 * MIB,
        reads=False,
        ends=ExpectedEnd.STAYS,
        long=True,
    ),
    Case(
        "endless rejected requests, responses never read",
        lambda n, _i: [sized_produce_request(9, {b"attacked": [(0, hostile.bad_records(NONE, 100))]}) * 100] * n,
        CaseSize(50, connections=2, seconds=6),
        CaseSize(800, connections=2, seconds=30),
        held=2 * MIB,
        reads=False,
        ends=ExpectedEnd.STAYS,
        long=True,
    ),
    Case(
        "12,000 client ids and topics of up to 20 kB",
        _client_ids(20_000),
        CaseSize(150, connections=8, seconds=20),
        CaseSize(1_500, connections=8, seconds=90),
        held=1 * MIB,
    ),
    Case(
        "12,000 client ids of 200 letters, one topic each",
        _client_ids(200),
        CaseSize(300, connections=8, seconds=20),
        CaseSize(1_500, connections=8, seconds=90),
        held=1 * MIB,
        log_bytes=12 * MIB,
        long=True,
    ),
    Case(
        "12,000 client ids of 200 letters that break rules, with samples",
        _client_ids_that_break_rules,
        CaseSize(100, connections=8, seconds=20),
        CaseSize(1_500, connections=8, seconds=90),
        held=1 * MIB,
        config=_RULES,
        log_bytes=12 * MIB,
    ),
    Case(
        "200 rejected logins with a name of 500 kB",
        _logins,
        CaseSize(500_000, connections=40, seconds=10),
        CaseSize(500_000, connections=200, seconds=30),
        held=25_000_000,
        broker="rejects logins",
    ),
    Case(
        "200 rejected logins, small",
        _logins,
        CaseSize(40, connections=200),
        held=1 * MIB,
        broker="rejects logins",
        log_bytes=100_000,
    ),
    Case(
        "software names of 1 MB, on 50 lasting connections",
        _long_texts,
        CaseSize(1_000_000, connections=50, seconds=5),
        held=2 * MIB,
        ends=ExpectedEnd.STAYS,
        stagger_seconds=0.05,
        long=True,
    ),
    Case(
        "a producer of each version, 20 MB",
        lambda n, number: [
            sized_produce_request(number, {b"attacked": [(0, batch([Rec(hostile.now(), value=bytes(n))]))]})
            for _ in range(5)
        ],
        CaseSize(1_000_000, connections=14),
        CaseSize(4_000_000, connections=14, seconds=30),
    ),
]
