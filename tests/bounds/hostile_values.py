"""Values that are expensive to search for sensitive fields: at least ten for each format.

Masks accept or reject them within the bounds that apply to rules: the work yields to other clients, and the memory is a
few times the value's size.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tests.bounds.frames import uvarint

SCHEMAS = Path(__file__).parent / "schemas"
LEVELS = 90
"""The nesting depth of values. Avro's and Protobuf's readers stop at 100."""
AVRO_LEVELS = 30
"""The same for Avro, in which a record, an array and a union are a level each."""
LONGEST = 16 << 20
"""The default of limits.max_decompression_window_bytes, which is the longest value that rules and masks accept."""


class Format(Enum):
    """A format of values, and the file of its schema below `schemas`, if it has one."""

    JSON = None
    AVRO = "sensitive.avsc"
    PROTOBUF = "sensitive.proto"


FIELDS: dict[str, tuple[str, ...]] = {
    "mask": (
        "mail",
        "mails",
        "by_name.*",
        "by_number.*.mail",
        "packed.mail",
        "more",
        ".".join(["inner"] * LEVELS + ["mail"]),
        ".".join(["inner"] * AVRO_LEVELS + ["mails"]),
        ".".join(["inner"] * (1 + AVRO_LEVELS) + ["mail"]),
    ),
    "hash": ("key", "inner.mail", "inner.by_name.*"),
    "reject": ("no",),
}
"""The sensitive fields in all formats, by action."""


@dataclass(frozen=True)
class HostileValue:
    """`make`: from the size (bytes) to a value of about this size. `is_long`: few tokens, so that its longest form is
    searched within a second. `is_masked`: whether its fields are replaced, or else the value is accepted as it is;
    None: it is rejected.
    """

    name: str
    format: Format
    make: Callable[[int], bytes]
    is_masked: bool | None
    is_long: bool = False


def _json(name: str, make: Callable[[int], bytes], is_masked: bool | None, is_long: bool = False) -> HostileValue:
    return HostileValue(f"JSON: {name}", Format.JSON, make, is_masked, is_long)


def _avro(name: str, make: Callable[[int], bytes], is_masked: bool | None, is_long: bool = False) -> HostileValue:
    return HostileValue(f"Avro: {name}", Format.AVRO, make, is_masked, is_long)


def _protobuf(name: str, make: Callable[[int], bytes], is_masked: bool | None, is_long: bool = False) -> HostileValue:
    return HostileValue(f"Protobuf: {name}", Format.PROTOBUF, make, is_masked, is_long)


def _around(start: bytes, part: bytes, end: bytes) -> Callable[[int], bytes]:
    """Return a function that repeats `part` between two texts."""
    return lambda size: start + part * ((size - len(start) - len(end)) // len(part)) + end


def _list_of(part: bytes) -> Callable[[int], bytes]:
    return _around(b'{"mails":[', part + b",", part + b"]}")


def _fields_of(part: bytes) -> Callable[[int], bytes]:
    return _around(b"{", part + b",", part + b"}")


def _keys(size: int) -> bytes:
    return b'{"by_name":{' + b",".join(b'"%d":"s"' % i for i in range(size // 12)) + b"}}"


def _nested_json(size: int) -> bytes:
    one = b'{"inner":' * LEVELS + b'{"mail":"s"}' + b"}" * LEVELS
    return _around(b"[", one + b",", one + b"]")(size)


_OF_JSON = [
    _json("a long string that stays", _around(b'{"note":"', b"a", b'"}'), False, True),
    _json("a long string that is masked", _around(b'{"mail":"', b"a", b'"}'), True, True),
    _json("a long string that is hashed", _around(b'{"key":"', b"a", b'"}'), True, True),
    _json("a long string of escapes that is hashed", _around(b'{"key":"', b"\\n", b'"}'), True, True),
    _json("a long string of surrogates that is hashed", _around(b'{"key":"', b"\\ud83d\\ude00", b'"}'), True, True),
    _json("a long string of wide characters", _around(b'{"key":"', b"a\xf0\x9f\x98\x80", b'"}'), True, True),
    _json("a long string without an end", _around(b'{"mail":"', b"a", b""), None, True),
    _json("a long string with an end that is not UTF-8", _around(b'{"mail":"', b"a", b'\xff"}'), None, True),
    _json("a long key", _around(b'{"', b"a", b'":"s","mail":"s"}'), True, True),
    _json("a long key of escapes", _around(b'{"', b"\\u0041", b'":"s","mail":"s"}'), True, True),
    _json("a long key for which any name is sensitive", _around(b'{"by_name":{"', b"\\t", b'":"s"}}'), True, True),
    _json("blanks", _around(b'{"mail":', b" \n\t\r", b'"s"}'), True, True),
    _json("digits", _around(b'{"note":', b"1", b',"mail":"s"}'), True, True),
    _json("digits of a fraction and an exponent", _around(b'{"note":-0.1e+', b"9", b"}"), False, True),
    _json("a long number that is sensitive", _around(b'{"mail":', b"1", b"}"), None, True),
    _json("a long word", _around(b'{"mail":', b"t", b"}"), None, True),
    _json("numbers", _list_of(b"null"), False),
    _json("lists of nothing", _list_of(b"[]"), False),
    _json("one masked field many times", _fields_of(b'"mail":""'), True),
    _json("one hashed field many times", _fields_of(b'"key":""'), True),
    _json("masked strings", _list_of(b'""'), True),
    _json("keys that are all sensitive", _keys, True),
    _json("masked fields 90 levels deep", _nested_json, True),
    _json("a list without an end", _around(b"", b"[", b""), None, True),
]


def _record(**fields: bytes) -> bytes:
    """Return a record of sensitive.avsc; fields that are not given are null or empty."""
    names = ("mail", "key", "mails", "by_name", "inner", "nothing", "others")
    return b"".join(fields.get(name, b"\0") for name in names)


def avro_long(value: int) -> bytes:
    """Return an Avro long."""
    return uvarint((value << 1) ^ (value >> 63))


def _block(items: bytes, count: int) -> bytes:
    """Return an array or a map of one block that states its size."""
    return avro_long(-count) + avro_long(len(items)) + items + b"\0" if count else b"\0"


def _items(field: str, item: bytes) -> Callable[[int], bytes]:
    return lambda size: _record(**{field: _block(item * (size // len(item)), size // len(item))})


def _blocks(field: str, block: bytes) -> Callable[[int], bytes]:
    return lambda size: _record(**{field: block * (size // len(block)) + b"\0"})


def _text(size: int, of: bytes = b"a") -> bytes:
    return avro_long(size // len(of) * len(of)) + of * (size // len(of))


def _entries(size: int) -> bytes:
    count = size // 11
    return _record(by_name=_block(b"".join(avro_long(6) + b"%06d" % i + b"\2\2s" for i in range(count)), count))


def _nested_avro(size: int) -> bytes:
    one = _record(mail=b"\2\2s")
    for _ in range(AVRO_LEVELS):
        one = _record(inner=_block(b"\2" + one, 1))
    count = size // len(one)
    return _record(inner=_block((b"\2" + one) * count, count))


def _wide_within_deep_avro(size: int) -> bytes:
    one = _record(mail=b"\2" + _text(8), mails=_text_items(size))
    for _ in range(AVRO_LEVELS):
        one = _record(inner=_block(b"\2" + one, 1))
    return one


def _text_items(size: int) -> bytes:
    return _block(b"\2\2s" * (size // 3), size // 3)


_OF_AVRO = [
    _avro("a long string that is masked", lambda size: _record(mail=b"\2" + _text(size)), True, True),
    _avro("a long string that is hashed", lambda size: _record(key=b"\2" + _text(size)), True, True),
    _avro(
        "a long string of wide characters",
        lambda size: _record(key=b"\2" + _text(size, b"\xf0\x9f\x98\x80")),
        True,
        True,
    ),
    _avro("a long string that is not UTF-8", lambda size: _record(key=b"\2" + _text(size, b"\xf0")), None, True),
    _avro("a long key", lambda size: _record(by_name=b"\2" + _text(size) + b"\2\2s\0"), True, True),
    _avro("bytes", lambda size: _record(others=b"\2\x0a" + _text(size) + b"\0"), False, True),
    _avro("nulls", _items("mails", b"\0"), False),
    _avro("masked strings", _items("mails", b"\2\0"), True),
    _avro("entries of a map", _entries, True),
    _avro("blocks of one masked string each", _blocks("mails", b"\1\4\2\0"), True),
    _avro("blocks of nothing that state a size", _blocks("nothing", b"\1\0"), False),
    _avro("blocks of 2^62 nulls", _blocks("nothing", avro_long(1 << 62)), False),
    _avro("a block of 2^62 strings", lambda size: _record(mails=avro_long(1 << 62) + b"\0" * size), None, True),
    _avro("numbers", _items("others", b"\2\1"), False),
    _avro("records of 127 nulls", _items("others", b"\x0e"), False),
    _avro("enums", _items("others", b"\x0c\2"), False),
    _avro("masked fields 30 levels deep", _nested_avro, True),
    _avro("masked strings below 30 levels", _wide_within_deep_avro, True),
]


def _field(number: int, data: bytes) -> bytes:
    return uvarint(number << 3 | 2) + uvarint(len(data)) + data


def _repeated(field: bytes) -> Callable[[int], bytes]:
    return lambda size: field * (size // len(field))


def _map_entries(size: int) -> bytes:
    return b"".join(_field(5, _field(2, b"s") + _field(1, b"%06d" % i)) for i in range(size // 13))


def _numbered(size: int) -> bytes:
    one = _field(2, _field(1, b"s"))
    return b"".join(_field(6, one + b"\x08" + uvarint(i)) for i in range(size // 12))


def _deep(inner: bytes) -> bytes:
    for _ in range(LEVELS):
        inner = _field(7, inner)
    return inner


def _nested_messages(size: int) -> bytes:
    one = _deep(_field(1, b"s"))
    return one * (size // len(one))


_OF_PROTOBUF = [
    _protobuf("a long string that is masked", lambda size: _field(1, b"a" * size), True, True),
    _protobuf("a long string that is hashed", lambda size: _field(2, b"a" * size), True, True),
    _protobuf(
        "a long string of wide characters", lambda size: _field(2, b"\xf0\x9f\x98\x80" * (size // 4)), True, True
    ),
    _protobuf("a long string that is not UTF-8", lambda size: _field(2, b"a" * size + b"\xf0"), None, True),
    _protobuf("a long unknown field", lambda size: _field(50, bytes(size)) + _field(1, b"s"), True, True),
    _protobuf("a long key of a map", lambda size: _field(5, _field(1, b"a" * size) + _field(2, b"s")), True, True),
    _protobuf("a long field without an end", lambda size: _field(1, b"a" * size)[:-1], None, True),
    _protobuf("masked strings", _repeated(_field(4, b"")), True),
    _protobuf("hashed strings", _repeated(_field(2, b"")), True),
    _protobuf("strings that stay", _repeated(_field(11, b"")), False),
    _protobuf("strings of an extension", _repeated(_field(100, b"s")), True),
    _protobuf("unknown numbers", _repeated(b"\xa0\x06\x01"), False),
    _protobuf("packed numbers", lambda size: _field(9, b"\1" * size), False, True),
    _protobuf("numbers one by one", _repeated(b"\x48\x01"), False),
    _protobuf("entries of a map with the key last", _map_entries, True),
    _protobuf("entries of a map of messages", _numbered, True),
    _protobuf("empty messages", _repeated(_field(7, b"")), False),
    _protobuf("groups", _repeated(b"\x43\x0a\x01s\x44"), True),
    _protobuf("groups without an end", _repeated(b"\x43"), None),
    _protobuf("unknown groups 90 deep", _repeated(b"\xab\x06" * LEVELS + b"\xac\x06" * LEVELS), False),
    _protobuf("masked fields 90 levels deep", _nested_messages, True),
    _protobuf("masked strings below 90 levels", lambda size: _deep(_field(1, b"s") * (size // 3)), True),
    _protobuf("tags that are too large", lambda size: struct.pack("<Q", (1 << 64) - 1) * (size // 8), None, True),
]

HOSTILE_VALUES = [*_OF_JSON, *_OF_AVRO, *_OF_PROTOBUF]
