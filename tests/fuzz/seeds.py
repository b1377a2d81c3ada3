"""Builds valid and some invalid requests and batches of all APIs, versions and codecs, as input for mutations."""

import time
from functools import cache

from sluicegate.protocol.api import APIS
from tests.bounds.frames import compact_string, good_batch, int32, request_header, short_string, sized_produce_request
from tests.bounds.stand_in_responses import topic_id_of
from tests.conformance.cases import CASES
from tests.fuzz.recorded.streams import recorded_batches
from tests.wire.batches import CODECS, NONE, Rec, batch, message, wrapper


@cache
def seed_batches(now: int) -> list[bytes]:
    """Return small batches written at `now` (ms): the conformance cases, each codec with records, headers, keys
    and nulls, and recorded batches of real producers.
    """
    found = {records for case in CASES for _, records in case.build(now) if records is not None and len(records) < 2000}
    records = [Rec(now + i, b"key", b"value" * 5, [(b"h", b"v"), (b"n", None)]) for i in range(4)]
    ruled = [Rec(now + i, b"key", value) for i, value in enumerate(seed_values())]
    found |= {batch(ruled, codec) for codec in CODECS.values()}
    found |= {batch([Rec(now, b"key", seed_values()[0])] * 2, codec) for codec in CODECS.values()}
    for codec in CODECS.values():
        found.add(batch(records, codec))
        found.add(batch([Rec(now, None, bytes(300))], codec))
        if codec in (1, 2, 3):
            found |= {wrapper(magic, [message(magic, b"v", timestamp=now)] * 3, codec) for magic in (0, 1)}
    found.add(batch(records, NONE) * 3)
    found |= {one for one in recorded_batches(now) if len(one) < 2000}
    return sorted(found)


@cache
def seed_values() -> list[bytes]:
    """Return record values that rules accept or reject."""
    return [
        b'{"n": 1.5, "s": "text", "l": ["a", "b"]}',
        '{"n":0,"s":"a","l":["é\\n\\u00e9\\ud83d\\ude00漢",[{}],{"x":[true,false,null,-1e5]}]}'.encode(),
        b"[" * 20 + b"]" * 20,
        b'"' + b"plain text of more than sixteen bytes \\\\ " * 5 + b'"',
        b"\0\0\0\0\x01\x02\x02\x08text\x02\x02\x02k\x04\0\0\0\0",
        b"\0\0\0\0\x01\x02\0\0",
    ]


@cache
def seed_requests() -> list[bytes]:
    """Return frames without their size: Produce in all versions with each batch, and every API in every version."""
    now = time.time_ns() // 1_000_000
    made = []
    for version in range(14):
        topic = topic_id_of("fuzzed") if version >= 13 else b"fuzzed"
        made += [
            sized_produce_request(version, {topic: [(0, one), (1, good_batch(now))]})[4:]
            for one in seed_batches(now)[:: 3 + version]
        ]
        made.append(sized_produce_request(version, {topic: [(0, None)], b"other": [(i, b"") for i in range(5)]})[4:])
        made.append(sized_produce_request(version, {topic: [(0, good_batch(now))]}, acks=0)[4:])
    for api in APIS.values():
        made += [request_header(api.key, version) + _body(api.key, version) for version in range(api.max_version + 1)]
    return made


def _body(key: int, version: int) -> bytes:
    match key:
        case 18 if version >= 3:
            return compact_string(b"soft") + compact_string(b"1.2") + b"\0"
        case 17:
            return short_string(b"PLAIN")
        case 36:
            token = b"\0alice\0secret"
            return compact_string(token) + b"\0" if version >= 2 else int32(len(token)) + token
        case 3:
            return b"\1\1\0\0" if version >= 9 else b"\xff\xff\xff\xff" + b"\1" * (version >= 4)
        case 10:
            return b"\0\2" + compact_string(b"g") + b"\0" if version >= 4 else short_string(b"group") + b"\0"
    return bytes(40)
