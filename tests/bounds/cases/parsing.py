"""Requests that are slow to parse, because of their varints, tags, counts or names."""

import os

from tests.bounds.case import Case, CaseSize, ExpectedEnd, Sends, send_one_piece
from tests.bounds.frames import (
    ProduceLayout,
    compact_string,
    empty_tagged_fields,
    endless_varint,
    equal_tagged_fields,
    int16,
    int32,
    one_large_tagged_field,
    request_header,
    short_string,
    sized_frame,
    sized_produce_request,
    sized_request,
    uvarint,
)

_V9 = ProduceLayout(9)
_PRODUCE_START = b"\0" + int16(1) + int32(1000)
_ENDLESS = CaseSize(100_000, seconds=8), CaseSize(400_000, seconds=20)
_TAGS = CaseSize(300_000), CaseSize(2_000_000, seconds=30)


def _in_header(key: int, version: int, tags: bytes, body: bytes = b"") -> bytes:
    return sized_frame(request_header(key, version, tags=tags) + body)


def _endless(name: str, make: Sends, only_thorough: bool = False) -> Case:
    title = f"a varint without an end: {name}"
    return Case(title, make, *_ENDLESS, ends=ExpectedEnd.CLOSED, only_thorough=only_thorough)


def _tagged(name: str, make: Sends, only_thorough: bool = False) -> Case:
    return Case(f"2 M tagged fields, 4 MB: {name}", make, *_TAGS, only_thorough=only_thorough)


def _ids(count: int) -> bytes:
    return sized_produce_request(13, {os.urandom(16): [(0, None)] for _ in range(count)})


def _null_partitions(version: int) -> Case:
    partitions: list[tuple[int, bytes | None]] = [(0, None)]
    return Case(
        f"200,000 null partitions: Produce v{version}",
        send_one_piece(lambda n: sized_produce_request(version, {b"attacked": partitions * n})),
        CaseSize(40_000),
        CaseSize(200_000, seconds=60),
        only_thorough=version not in (0, 9, 13),
    )


def _many(name: str, make: Sends, thorough: int) -> Case:
    return Case(name, make, CaseSize(thorough // 10), CaseSize(thorough, seconds=60))


_VERSIONS_BODY = compact_string(b"s") + compact_string(b"1") + b"\0"

PARSING = [
    _endless("the length of a name, ApiVersions v3", send_one_piece(lambda n: sized_request(18, 3, endless_varint(n)))),
    _endless(
        "the length of a version, ApiVersions v4",
        send_one_piece(lambda n: sized_request(18, 4, b"\2s" + endless_varint(n))),
        only_thorough=True,
    ),
    _endless(
        "the tags of a body, ApiVersions v3",
        send_one_piece(lambda n: sized_request(18, 3, b"\2s\2s" + endless_varint(n))),
    ),
    _endless("a header's tags, ApiVersions v3", send_one_piece(lambda n: _in_header(18, 3, endless_varint(n)))),
    _endless(
        "a tag's size in a header, Produce v9", send_one_piece(lambda n: _in_header(0, 9, b"\1\1" + endless_varint(n)))
    ),
    _endless("topics, Produce v9", send_one_piece(lambda n: sized_request(0, 9, _PRODUCE_START + endless_varint(n)))),
    _endless(
        "a topic's name, Produce v12",
        send_one_piece(lambda n: sized_request(0, 12, _PRODUCE_START + b"\2" + endless_varint(n))),
        only_thorough=True,
    ),
    _endless(
        "a transactional id, Produce v13",
        send_one_piece(lambda n: sized_request(0, 13, endless_varint(n))),
        only_thorough=True,
    ),
    _endless("a token, SaslAuthenticate v2", send_one_piece(lambda n: sized_request(36, 2, endless_varint(n)))),
    Case(
        "varints of 20 kB without an end, one on each of 200 connections: the log is not flooded",
        send_one_piece(lambda n: sized_request(18, 3, endless_varint(n))),
        CaseSize(20_000, connections=200),
        ends=ExpectedEnd.CLOSED,
        log_bytes=100_000,
    ),
    _tagged(
        "a header, ApiVersions v3", send_one_piece(lambda n: _in_header(18, 3, equal_tagged_fields(n), _VERSIONS_BODY))
    ),
    _tagged(
        "a body, ApiVersions v3",
        send_one_piece(lambda n: sized_request(18, 3, _VERSIONS_BODY[:-1] + equal_tagged_fields(n))),
    ),
    _tagged("a header, Produce v9", send_one_piece(lambda n: _in_header(0, 9, equal_tagged_fields(n), _V9.body([])))),
    _tagged(
        "a body, Produce v9",
        send_one_piece(lambda n: sized_request(0, 9, _V9.body([])[:-1] + equal_tagged_fields(n))),
        only_thorough=True,
    ),
    _tagged(
        "partitions, Produce v9",
        send_one_piece(
            lambda n: sized_request(
                0,
                9,
                _V9.body(
                    [_V9.topic(b"attacked", [int32(i) + b"\0" + equal_tagged_fields(n // 100) for i in range(100)])]
                ),
            )
        ),
    ),
    _tagged(
        "a body, SaslAuthenticate v2", send_one_piece(lambda n: sized_request(36, 2, b"\2x" + equal_tagged_fields(n)))
    ),
    _tagged(
        "distinct tags, ApiVersions v3",
        send_one_piece(lambda n: sized_request(18, 3, _VERSIONS_BODY[:-1] + empty_tagged_fields(n))),
        only_thorough=True,
    ),
    _tagged(
        "a header, Metadata v12",
        send_one_piece(lambda n: _in_header(3, 12, equal_tagged_fields(n), b"\1\1\0\0")),
        only_thorough=True,
    ),
    _tagged(
        "a header, FindCoordinator v4",
        send_one_piece(lambda n: _in_header(10, 4, equal_tagged_fields(n), b"\0\2\2g\0")),
    ),
    _tagged(
        "a header, InitProducerId v4",
        send_one_piece(lambda n: _in_header(22, 4, equal_tagged_fields(n), b"\0" * 16)),
        only_thorough=True,
    ),
    *(_null_partitions(version) for version in (0, 2, 3, 7, 9, 12, 13)),
    _many(
        "200,000 partitions of no bytes, Produce v9",
        send_one_piece(lambda n: sized_produce_request(9, {b"attacked": [(0, b"")] * n})),
        200_000,
    ),
    _many(
        "200,000 partitions of 7 bytes, Produce v11",
        send_one_piece(lambda n: sized_produce_request(11, {b"attacked": [(0, b"garbage")] * n})),
        200_000,
    ),
    _many(
        "200,000 topics without partitions, Produce v9",
        send_one_piece(lambda n: sized_request(0, 9, _V9.body([_V9.topic(b"t", [])] * n))),
        200_000,
    ),
    _many("60,000 unknown topic ids, Produce v13", send_one_piece(_ids), 60_000),
    _many(
        "one unknown topic id, 60,000 times, Produce v13",
        send_one_piece(lambda n: sized_request(0, 13, ProduceLayout(13).body([ProduceLayout(13).topic(b"?", [])] * n))),
        60_000,
    ),
    Case(
        "unknown topic ids, on 50 connections",
        lambda n, _number: [_ids(n // 50)],
        CaseSize(5_000, connections=50),
        CaseSize(60_000, connections=50, seconds=60),
        long=True,
    ),
    Case(
        "a topic name of 20,000 letters, a pattern that backtracks",
        send_one_piece(lambda n: sized_produce_request(3, {b"a" * n: [(0, None)]})),
        CaseSize(20_000),
        config={"topics": [{"match": "/.*.*x.*y/", "cleanup.policy": "compact"}]},
    ),
    Case(
        "names of 249 letters, a pattern that backtracks forever",
        send_one_piece(
            lambda n: sized_produce_request(
                9, {b"a" * 249: [(0, None)]} | {b"a" * (248 - i): [(0, None)] for i in range(n)}
            )
        ),
        CaseSize(20),
        CaseSize(200),
        config={"topics": [{"match": "/(a+)+b/", "cleanup.policy": "compact"}]},
    ),
    Case(
        "a token of 10 MB that is not a login",
        lambda n, _i: [_handshake(0), sized_frame(b"n," * (n // 2))],
        CaseSize(10_000_000),
    ),
    Case(
        "100 MB of one token",
        send_one_piece(lambda n: sized_request(36, 2, uvarint(n + 1) + bytes(n) + b"\0")),
        CaseSize(20_000_000),
        CaseSize(100_000_000),
    ),
    Case(
        "one tag of 100 MB, ApiVersions v3",
        send_one_piece(lambda n: _in_header(18, 3, one_large_tagged_field(n), _VERSIONS_BODY)),
        CaseSize(20_000_000),
        CaseSize(100_000_000),
    ),
    Case(
        "a name of 100 MB, ApiVersions v3",
        send_one_piece(lambda n: sized_request(18, 3, compact_string(bytes(n)) + b"\2s\0")),
        CaseSize(20_000_000),
        CaseSize(100_000_000),
    ),
    Case(
        "a mechanism of 30 kB on each of 100 connections, SaslHandshake v1",
        send_one_piece(lambda n: sized_request(17, 1, short_string(b"m" * n))),
        CaseSize(30_000, connections=100),
    ),
]


def _handshake(version: int) -> bytes:
    return sized_request(17, version, short_string(b"SCRAM-SHA-256"))
