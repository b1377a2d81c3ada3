"""Values in each format that are expensive to search for sensitive fields. Other clients do not notice it."""

import time
from random import Random
from typing import Any

from tests.bounds.case import MIB, Case, CaseSize
from tests.bounds.frames import sized_produce_request
from tests.bounds.hostile_values import FIELDS, HOSTILE_VALUES, LONGEST, SCHEMAS, Format, HostileValue
from tests.wire.batches import ZSTD, Rec, batch

_SCHEMAS: dict[Format, dict[str, str]] = {
    Format.JSON: {},
    Format.AVRO: {"file": str(SCHEMAS / "sensitive.avsc"), "format": "avro"},
    Format.PROTOBUF: {"file": str(SCHEMAS / "sensitive.proto"), "format": "protobuf", "message": "Person"},
}
_KEY_FILE = SCHEMAS / "lists.json"  # any existing file of 16 bytes or more
_TOKENS_OF_LONG = 4
"""The factor by which values with many short tokens are shorter."""
_RATIO = 800


def _topic(format: Format) -> str:
    return f"sensitive-{format.name.lower()}"


def _sensitive(format: Format) -> list[dict[str, Any]]:
    schema = {"schema": _SCHEMAS[format]} if _SCHEMAS[format] else {}
    keys = {"hash": {"key_file": str(_KEY_FILE)}}
    return [
        {"name": action, "action": action, "fields": list(paths)} | keys.get(action, {}) | schema
        for action, paths in FIELDS.items()
    ]


_CONFIG = {"topics": [{"match": _topic(format), "sensitive": _sensitive(format)} for format in Format]}


def _request(hostile: HostileValue, size: int) -> bytes:
    value = hostile.make(size if hostile.is_long else size // _TOKENS_OF_LONG)
    key = Random(1).randbytes(len(value) // _RATIO)  # within limits.max_decompression_ratio
    record = Rec(time.time_ns() // 1_000_000, key, value)
    return sized_produce_request(9, {_topic(hostile.format).encode(): [(0, batch([record], ZSTD))]})


def _all_of(format: Format) -> Case:
    """Return a case that sends all values of a format, one after the other."""

    def pieces_of_sender(amount: int, _number: int) -> list[bytes]:
        return [_request(each, amount) for each in HOSTILE_VALUES if each.format is format]

    return Case(
        f"sensitive {format.name}: every hostile value",
        pieces_of_sender,
        CaseSize(100_000, 1, 30),
        CaseSize(4_000_000, 3, 600),
        held=MIB,
        config=_CONFIG,
    )


def _case(hostile: HostileValue) -> Case:
    return Case(
        f"sensitive {hostile.name}",
        lambda amount, _number: [_request(hostile, amount)],
        CaseSize(100_000, 1, 30),
        CaseSize(LONGEST - LONGEST // _RATIO - 1000, 3, 300),  # the key and the value are one record
        held=LONGEST,
        config=_CONFIG,
        only_thorough=True,
    )


SENSITIVE = [*map(_all_of, Format), *map(_case, HOSTILE_VALUES)]
