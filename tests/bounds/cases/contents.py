"""Keys and values, valid and invalid, for which rules use much time and memory."""

import time
from collections.abc import Callable
from pathlib import Path

from tests.bounds.case import RULES_PROCESS_BYTES, Case, CaseSize, send_one_piece
from tests.bounds.frames import sized_produce_request, uvarint
from tests.wire.batches import Rec, batch

_SCHEMAS = Path(__file__).parent.parent / "schemas"


def _schema(file: str, kind: str, **more: str) -> dict[str, object]:
    return {"schema": {"file": str(_SCHEMAS / file), "format": kind, **more}}


_RULES: dict[str, dict[str, object]] = {
    "syntax": {"json": {}},
    "keys": {"json": {"duplicate_keys": "reject"}},
    "lists": _schema("lists.json", "json"),
    "numbers": _schema("numbers.avsc", "avro"),
    "node": _schema("node.proto", "protobuf", message="Node"),
}
_CONFIG = {
    "topics": [{"match": name, "rules": [{"name": name, "value": asked}]} for name, asked in _RULES.items()]
    + [{"match": "expression", "rules": [{"name": "expression", "cel": "size(value) > 0"}]}]
}


def _case(topic: str, what: str, make: Callable[[int], bytes], records: int = 1) -> Case:
    """Return a case with records of one value, about 8 MB in total in the long form."""

    def produce_request_with_contents(size: int) -> bytes:
        value = make(size // records)
        made = [Rec(time.time_ns() // 1_000_000, b"key", value) for _ in range(records)]
        return sized_produce_request(9, {topic.encode(): [(0, batch(made))]})

    return Case(
        f"rule {topic}: {what}",
        send_one_piece(produce_request_with_contents),
        CaseSize(2_000_000, connections=2, seconds=15),
        CaseSize(8_000_000, connections=4, seconds=60),
        beside=RULES_PROCESS_BYTES,  # the rules process starts with the first value that may be costly
        config=_CONFIG,
    )


def _json(item: bytes) -> Callable[[int], bytes]:
    return lambda size: b"[" + (item + b",") * (size // (len(item) + 1)) + b"1]"


def _objects(size: int) -> bytes:
    return b"{" + b",".join(b'"%d":1' % i for i in range(size // 11)) + b"}"


def _repeated(field: bytes) -> Callable[[int], bytes]:
    return lambda size: field * (size // len(field))


def _entries(size: int) -> bytes:
    """Return map entries with distinct keys."""
    keys = (b"\x08" + uvarint(i) for i in range(size // 6))
    return b"".join(b"\x22" + uvarint(len(key)) + key for key in keys)


def _deep(size: int) -> bytes:
    inside = b""
    for _ in range(90):
        inside = b"\x0a" + uvarint(len(inside)) + inside
    return inside * (size // len(inside))


def _longs(size: int) -> bytes:
    """Return one Avro block of longs and an empty map."""
    count = size - 8
    return uvarint(count << 1) + b"\x02" * count + b"\x00\x00"


CONTENTS = [
    *(_case(topic, "lists of nothing", _json(b"[]")) for topic in ("syntax", "keys", "lists", "expression")),
    *(_case(topic, "numbers", _json(b"1")) for topic in ("syntax", "keys", "lists", "expression")),
    *(_case(topic, "an object of many keys", _objects) for topic in ("syntax", "keys", "lists", "expression")),
    *(_case(topic, "many small lists", _json(b"1"), 1000) for topic in ("keys", "lists", "expression")),
    _case("numbers", "Avro's longs", _longs),
    _case("numbers", "Avro's longs in many records", _longs, 1000),
    _case("node", "a map's entries", _entries),
    _case("node", "a map's entries in records of half a megabyte", _entries, 16),
    _case("node", "messages of nothing", _repeated(b"\x0a\x00")),
    _case("node", "messages of nothing in records of half a megabyte", _repeated(b"\x0a\x00"), 16),
    _case("node", "messages 90 deep", _deep),
    _case("node", "numbers one by one", _repeated(b"\x10\x01")),
    _case("node", "fields it does not know", _repeated(b"\x78\x01")),
]
