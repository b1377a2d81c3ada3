"""Batches for which rewriting or copying records is costly: marks, fixes, masks, quarantine, headers in rules."""

import os
import time
from collections.abc import Callable
from typing import Any

import lz4.frame

from tests.bounds.case import RULES_PROCESS_BYTES, Case, CaseSize, send_one_piece
from tests.bounds.frames import sized_produce_request
from tests.wire.batches import GZIP, LZ4, NONE, SNAPPY, XERIAL, ZSTD, Rec, batch, identical_records, varint

_LATE = 10**15  # in ms; no bound accepts it
_SECRET = b'{"mail":"a@b"}'
_MARK = b"sluicegate.reason"
_HEADER_RULE = {"name": "traced", "headers": {"required": ["trace"], "patterns": {"h": "*"}, "max_size": "10MB"}}
_EXPRESSION = {"name": "traced", "cel": "'trace' in headers"}
_ALL_HEADERS = {"name": "traced", "cel": "headers.all(name, name != 'x')"}
_KEYED = {"name": "keyed", "key": {"required": True}}
_SENSITIVE = [{"name": "mail", "action": "mask", "fields": ["mail"]}]
_BOUNDS = {"message.timestamp.before.max.ms": "1h", "message.timestamp.after.max.ms": "1h"}
_CONFIG: dict[str, Any] = {
    "topics": [
        {"match": "marked", "mode": "mark", "rules": [_KEYED], **_BOUNDS},
        {"match": "fixed", "fix": {"timestamp": "now"}, **_BOUNDS},
        {"match": "masked", "sensitive": _SENSITIVE},
        {"match": "copied", "mode": "observe", "quarantine": "dead", **_BOUNDS},
        {"match": "headers", "rules": [_HEADER_RULE]},
        {"match": "expression", "rules": [_EXPRESSION]},
        {"match": "all-headers", "rules": [_ALL_HEADERS]},
    ],
    "limits": {"max_quarantined_bytes": 16 << 20},
}

_Make = Callable[[int], bytes]


def _now() -> int:
    return time.time_ns() // 1_000_000


def _alike(rec: Callable[[int], Rec], codec: int) -> _Make:
    """Return a function that makes a batch of equal records."""

    def make_batch(count: int) -> bytes:
        now = _now()
        made = identical_records(rec(now), count, now)
        return batch([], codec, payload=made, count=count, base_timestamp=now, max_timestamp=now)

    return make_batch


def _with_random_keys(rec: Callable[[bytes], Rec], codec: int) -> _Make:
    """Return a function that makes a batch of records with random keys, so that the ratio is that of real records."""
    return lambda count: batch([rec(os.urandom(130)) for _ in range(count)], codec)


# The other cases resemble a case of the short form.
_SHORT = (
    "marked: late records: gzip",
    "marked: headers like marks",
    "marked: many partitions",
    "fixed: late records: zstd",
    "masked: small values: gzip",
    "masked: only the last value",
    "copied: late records of many headers",
    "headers: 9,900 of one name",
    "expression: 9,900 names",
    "all-headers: 9,900 names",
)


def _case(topic: str, what: str, make: _Make, short: int, thorough: int, partitions: int = 1) -> Case:
    def produce_request_to_rewrite(amount: int) -> bytes:
        return sized_produce_request(9, {topic.encode(): [(i, make(amount)) for i in range(partitions)]})

    return Case(
        f"{topic}: {what}",
        send_one_piece(produce_request_to_rewrite),
        CaseSize(short, seconds=15),
        CaseSize(thorough, connections=3, seconds=90),
        config=_CONFIG,
        only_thorough=f"{topic}: {what}" not in _SHORT,
        beside=RULES_PROCESS_BYTES if topic in ("expression", "all-headers") else 0,
    )


def _late(now: int) -> Rec:
    return Rec(now + _LATE, None, None)


def _secret(now: int) -> Rec:
    return Rec(now, b"k", _SECRET)


def _clear(now: int) -> Rec:
    return Rec(now, b"k", b"{}")


def _many_headers(name: Callable[[int], bytes], count: int, value: bytes | None = b"") -> Callable[[bytes], Rec]:
    headers = [(name(i), value) for i in range(count)]
    return lambda key: Rec(_now(), key, b"v", headers)


def _first_clear_last_secret(count: int) -> bytes:
    now = _now()
    records = [Rec(now, b"k", b"{}")] * (count - 1)
    return batch([*records, Rec(now, b"k", _SECRET)], ZSTD)


def _zeros(record: Callable[[bytes], Rec], codec: int) -> _Make:
    """Return a function that makes a batch of one record with a value of zeros, with a ratio below the limit."""
    return lambda size: batch([record(bytes(size))], codec)


def _small_lz4_blocks(count: int) -> bytes:
    """Return a batch of late records in lz4 blocks of a few records each."""
    now = _now()
    plain = identical_records(_late(now), count, now)
    head = lz4.frame.compress(b"", block_linked=False)[:-4]
    blocks = [plain[at : at + 20] for at in range(0, len(plain), 20)]
    stored = b"".join((len(block) | 1 << 31).to_bytes(4, "little") + block for block in blocks)
    made = head + stored + bytes(4)
    return batch([], LZ4, compressed=made, count=count, base_timestamp=now, max_timestamp=now)


def _length_of_another(count: int) -> bytes:
    """Return a batch whose last record states a length that is not its own."""
    now = _now()
    made = identical_records(_secret(now), count, now) + varint(500) + b"\0" * 20
    return batch([], ZSTD, payload=made, count=count + 1, base_timestamp=now, max_timestamp=now)


REWRITING = [
    *(
        _case("marked", f"late records: {name}", _alike(_late, codec), 200_000, 2_000_000)
        for name, codec in {"none": NONE, "gzip": GZIP, "snappy": SNAPPY, "xerial": XERIAL, "zstd": ZSTD}.items()
    ),
    _case("marked", "late records in lz4 blocks of 20 bytes", _small_lz4_blocks, 100_000, 1_000_000),
    _case("marked", "records without a key", _alike(lambda now: Rec(now, None, None), GZIP), 60_000, 60_000),
    _case("marked", "headers like marks", _with_random_keys(_many_headers(lambda _: _MARK, 5_000), ZSTD), 30, 300),
    _case("marked", "a value of zeros, late", _zeros(lambda v: Rec(_LATE, None, v), GZIP), 15_000_000, 90_000_000),
    _case("marked", "many partitions", _alike(_late, GZIP), 500, 20_000, 100),
    *(
        _case("fixed", f"late records: {name}", _alike(_late, codec), 200_000, 2_000_000)
        for name, codec in {"none": NONE, "gzip": GZIP, "zstd": ZSTD}.items()
    ),
    _case("fixed", "a value of zeros, late", _zeros(lambda v: Rec(_LATE, b"k", v), ZSTD), 15_000_000, 90_000_000),
    _case("fixed", "many partitions", _alike(_late, ZSTD), 2_000, 20_000, 100),
    *(
        _case("masked", f"small values: {name}", _alike(_secret, codec), 30_000, 700_000)
        for name, codec in {"none": NONE, "gzip": GZIP, "lz4": LZ4, "xerial": XERIAL, "zstd": ZSTD}.items()
    ),
    _case("masked", "only the last value", _first_clear_last_secret, 30_000, 300_000),
    _case("masked", "nothing to mask", _alike(_clear, ZSTD), 60_000, 700_000),
    _case("masked", "null values", _alike(lambda now: Rec(now, None, None), ZSTD), 200_000, 2_000_000),
    _case("masked", "the last length is wrong", _length_of_another, 30_000, 300_000),
    _case("copied", "late records", _alike(_late, ZSTD), 30_000, 2_000_000),
    _case(
        "copied",
        "late records of many headers",
        _with_random_keys(lambda key: Rec(_LATE, key, b"v", [(b"name", None)] * 9_000), ZSTD),
        30,
        300,
    ),
    _case("copied", "many partitions", _alike(_late, ZSTD), 100, 2_000, 100),
    _case("headers", "9,900 of one name", _with_random_keys(_many_headers(lambda _: b"h", 9_900), ZSTD), 20, 300),
    _case("headers", "9,900 names", _with_random_keys(_many_headers(lambda i: b"name%d" % i, 9_900), ZSTD), 60, 300),
    _case(
        "headers",
        "long names of NUL",
        _with_random_keys(_many_headers(lambda i: b"\0" * 90 + b"%d" % i, 900), ZSTD),
        60,
        600,
    ),
    *(
        _case(topic, "9,900 names", _with_random_keys(_many_headers(lambda i: b"name%d" % i, 9_900), ZSTD), 20, 300)
        for topic in ("expression", "all-headers")
    ),
]
