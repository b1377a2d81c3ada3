"""Shared resources that clients can occupy: announced memory, time and connections."""

from tests.bounds import hostile_batches as hostile
from tests.bounds.case import Case, CaseSize, ExpectedEnd, send_one_piece
from tests.bounds.frames import (
    good_batch,
    incomplete_frame,
    request_head,
    request_header,
    short_string,
    sized_produce_request,
    sized_request,
)

GIANT = 104_857_600
_SHORT = {"limits": {"frame_timeout_seconds": 1.5}}


def _announcement(key: int, version: int) -> bytes:
    return incomplete_frame(GIANT, request_header(key, version))


_ANNOUNCEMENTS = {
    "Produce v9": _announcement(0, 9),
    "Produce v3": _announcement(0, 3),
    "ApiVersions v3": _announcement(18, 3),
    "SaslAuthenticate v2": _announcement(36, 2),
    "SaslHandshake v1": _announcement(17, 1),
    "Metadata v12, which passes": _announcement(3, 12),
    "Fetch v11, which passes": _announcement(1, 11),
    "a raw token": sized_request(17, 0, short_string(b"PLAIN")) + incomplete_frame(GIANT, b"\0alice\0"),
    "two bytes of a size": b"\0\0",
    "half a head": incomplete_frame(GIANT, b"\0\0\0"),
}


def _announcements(name: str, first: bytes, connections: int = 12, **changes: object) -> Case:
    """Announced bytes that never arrive: each connection closes when its time is up."""
    return Case(
        f"{connections} connections announce 100 MB and send nothing: {name}",
        send_one_piece(lambda _: first),
        CaseSize(connections=connections, seconds=6),
        ends=ExpectedEnd.CLOSED,
        config=_SHORT,
        **changes,
    )


def _giants_and_honest(amount: int, number: int) -> list[bytes]:
    """Six connections announce 100 MB; all others write one small batch."""
    if number < amount:
        return [incomplete_frame(GIANT, request_head(0, 9))]
    return [sized_produce_request(9, {b"attacked": [(0, good_batch(hostile.now()))]})]


def _after_a_fetch(amount: int, _number: int) -> list[bytes]:
    fetch = sized_request(1, 11, b"\xff" * 4 + b"\x7f\xff\xff\xff" + b"\0\0\0\1" + b"\0" * 26)
    return [fetch + sized_request(18, 2, b"") * amount + _announcement(0, 9)]


SHARED_MEMORY = [
    _announcements("Produce v9", _ANNOUNCEMENTS["Produce v9"], long=True),
    *(_announcements(name, claim, only_thorough=True) for name, claim in list(_ANNOUNCEMENTS.items())[1:]),
    _announcements("Produce v9, 40 of them", _ANNOUNCEMENTS["Produce v9"], connections=40, only_thorough=True),
    Case(
        "30 connections announce 100 MB and send nothing, in ten ways",
        lambda _n, number: [list(_ANNOUNCEMENTS.values())[number % len(_ANNOUNCEMENTS)]],
        CaseSize(connections=30, seconds=6),
        ends=ExpectedEnd.CLOSED,
        config=_SHORT,
    ),
    _announcements("over TLS", _announcement(0, 9), tls=True),
    Case(
        "a byte every 0.2 s of 100 MB, on 20 connections",
        lambda _n, _i: [_announcement(0, 9), *[b"\0"] * 60],
        CaseSize(connections=20, seconds=6),
        ends=ExpectedEnd.CLOSED,
        config=_SHORT,
        pause_seconds=0.2,
        responses_each=0,
    ),
    Case(
        "100 MB each from 12 connections, all but the last byte",
        lambda n, _i: [incomplete_frame(n, request_header(0, 9) + bytes(n - 1000))],
        CaseSize(20_000_000, connections=6, seconds=8),
        CaseSize(100_000_000, connections=12, seconds=20),
        ends=ExpectedEnd.CLOSED,
        config=_SHORT,
    ),
    Case(
        "6 connections announce 100 MB while 5,300 wait with one small request",
        _giants_and_honest,
        CaseSize(6, connections=600, seconds=4),
        CaseSize(6, connections=5_306, seconds=45),
        ends=ExpectedEnd.STAYS,
        stagger_seconds=0.002,
        only_thorough=True,
    ),
    Case(
        "the same, and the time of the six is up",
        _giants_and_honest,
        CaseSize(6, connections=600, seconds=6),
        CaseSize(6, connections=5_306, seconds=20),
        config=_SHORT,
        stagger_seconds=0.002,
    ),
    Case(
        "a Fetch that never ends and 1,003 small requests before a claim of 100 MB, on 6 connections",
        _after_a_fetch,
        CaseSize(1_003, connections=6, seconds=8),
        ends=ExpectedEnd.CLOSED,
        config=_SHORT,
        broker="silent to 1",
        reads=True,
    ),
    Case(
        "a Fetch that never ends before a claim of 100 MB",
        _after_a_fetch,
        CaseSize(3, connections=12, seconds=8),
        ends=ExpectedEnd.CLOSED,
        config=_SHORT,
        broker="silent to 1",
    ),
    Case(
        "claims of 100 MB to a broker that does not read",
        send_one_piece(lambda _: sized_request(3, 9, b"\1\1\0\0\0") * 20_000 + _announcement(0, 9)),
        CaseSize(connections=6, seconds=20),
        ends=ExpectedEnd.CLOSED,
        config={"limits": {"frame_timeout_seconds": 1.5, "idle_timeout_seconds": 3}},
        broker="deaf",
        long=True,
    ),
    Case(
        "100 silent connections, idle_timeout_seconds: 2",
        lambda _n, _i: [b""],
        CaseSize(connections=100, seconds=6),
        ends=ExpectedEnd.CLOSED,
        config={"limits": {"idle_timeout_seconds": 2}},
    ),
    Case(
        "100 connections idle after a response, idle_timeout_seconds: 2",
        send_one_piece(lambda _: sized_request(18, 2, b"")),
        CaseSize(connections=100, seconds=6),
        ends=ExpectedEnd.CLOSED,
        config={"limits": {"idle_timeout_seconds": 2}},
    ),
    Case(
        "300 connections of one address, max_connections_per_address: 50",
        lambda _n, _i: [b""],
        CaseSize(connections=300, seconds=2),
        ends=ExpectedEnd.STAYS,
        config={"limits": {"max_connections_per_address": 50}},
    ),
    Case(
        "2,000 slow clients",
        lambda _n, _i: [_announcement(0, 9), *[b"\0"] * 30],
        CaseSize(connections=400, seconds=7),
        CaseSize(connections=2_000, seconds=15),
        ends=ExpectedEnd.CLOSED,
        config=_SHORT,
        stagger_seconds=0.002,
        pause_seconds=0.3,
        responses_each=0,
    ),
    Case(
        "3,000 idle connections",
        send_one_piece(lambda _: sized_request(18, 2, b"")),
        CaseSize(connections=500, seconds=3),
        CaseSize(connections=3_000, seconds=10),
        ends=ExpectedEnd.STAYS,
        stagger_seconds=0.002,
    ),
    Case(
        "500 connections at once",
        send_one_piece(lambda _: sized_request(18, 2, b"")),
        CaseSize(connections=500, seconds=8),
        ends=ExpectedEnd.RESPONDED,
    ),
]
