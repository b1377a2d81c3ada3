"""Defines values that are costly to search or to validate, in addition to those in tests/bounds/hostile_values.py.

The Avro and Protobuf values are instances of `Person` in tests/bounds/schemas.
"""

from collections.abc import Callable
from typing import NamedTuple

from tests.bounds.frames import uvarint
from tests.bounds.hostile_values import Format, avro_long

WINDOW = 64 * 1024
"""Long texts are read in windows of this size; text that crosses the end of a window is read differently."""


class HostileValueMaker(NamedTuple):
    """`make`: from the size (bytes) to a value of about this size."""

    name: str
    format: Format
    make: Callable[[int], bytes]


def _json(name: str, make: Callable[[int], bytes]) -> HostileValueMaker:
    return HostileValueMaker(f"JSON: {name}", Format.JSON, make)


def _avro(name: str, make: Callable[[int], bytes]) -> HostileValueMaker:
    return HostileValueMaker(f"Avro: {name}", Format.AVRO, make)


def _protobuf(name: str, make: Callable[[int], bytes]) -> HostileValueMaker:
    return HostileValueMaker(f"Protobuf: {name}", Format.PROTOBUF, make)


def _times(start: bytes, part: bytes, end: bytes) -> Callable[[int], bytes]:
    return lambda size: start + part * (size // len(part)) + end


def _list(part: bytes) -> Callable[[int], bytes]:
    return _times(b"[", part + b",", part + b"]")


def _fields(part: bytes, name: bytes = b"") -> Callable[[int], bytes]:
    return _times(b"{" + name, part + b",", part + (b"}}" if name else b"}"))


def _across_windows(part: bytes) -> Callable[[int], bytes]:
    """Return a function that puts `part` across the end of each window of a masked string, at each position."""

    def make_value(size: int) -> bytes:
        text = bytearray(b'{"mail":"')
        for at in range(WINDOW, size + WINDOW, WINDOW):
            text += b"a" * (at - len(text) - 1 - at // WINDOW % len(part)) + part
        return bytes(text) + b'"}'

    return make_value


def _distinct(key: Callable[[int], str]) -> Callable[[int], bytes]:
    return lambda size: b"{" + b",".join(f'"{key(i)}":"s"'.encode() for i in range(size // 16)) + b"}"


JSON = [
    _json("lists 100 deep", _list(b"[" * 100 + b"]" * 100)),
    _json("objects and lists 99 deep", _list(b'{"inner":[' * 49 + b'{"mail":"s"}' + b"]}" * 49)),
    _json("one list 201 deep at the end", lambda size: b"[" + b"0," * (size // 2) + b"[" * 201 + b"]" * 202),
    _json("distinct keys", _distinct(lambda i: f"key{i}")),
    _json("keys that differ in their last letter", _distinct(lambda i: "a" * 40 + str(i))),
    _json("empty objects", _list(b"{}")),
    _json("one key many times", _fields(b'"a":1')),
    _json("one key in two spellings", _fields(b'"a":1,"\\u0061":1')),
    _json("a masked key that is written with escapes", _fields(b'"\\u006dail":"s"')),
    _json("keys of surrogate pairs", _distinct(lambda i: f"\\ud83d\\ude{i % 64:02x}{i}")),
    _json("half a pair in a masked string", _fields(b'"mail":"\\ud83d"')),
    _json("half a pair in a hashed string", _fields(b'"key":"\\ude00"')),
    _json("half a pair in a key", _fields(b'"\\ud800":"s"')),
    _json("a pair of surrogates across windows", _across_windows(b"\\ud83d\\ude00")),
    _json("an escape across windows", _across_windows(b"\\n")),
    _json("a character of four bytes across windows", _across_windows("😀".encode())),
    _json("half a pair across windows", _across_windows(b"\\ud83dx")),
    _json("a backslash at the end of each window", _across_windows(b"\\\\")),
    _json("a number of many digits", _times(b'{"note":', b"7", b"}")),
    _json("a number of many digits that is masked", _times(b'{"mail":', b"7", b"}")),
    _json("a fraction of many zeros", _times(b"[-0.", b"0", b"1]")),
    _json("exponents of nine digits", _list(b"1e999999999")),
    _json("numbers beyond a double", _list(b"-1E+400")),
    _json("a word many times", _times(b"[", b"true", b"]")),
    _json("blanks around each token", _times(b"[", b" \t0\r\n ,", b" 0 ]")),
    _json("one text after another", _times(b"", b'{"mail":"s"}\n', b"")),
    _json("a mark of byte order", _times(b'\xef\xbb\xbf{"mail":"', b"s", b'"}')),
    _json("UTF-16", lambda size: ('{"mail":"' + "s" * (size // 2) + '"}').encode("utf-16")),
    _json("zero bytes", bytes),
    _json("lists after an id", _times(b"\0\0\0\0\1[", b'{"mail":"s"},', b"1]")),
    _json("objects of a map", _fields(b'"1":{"mail":"s"}', b'"by_number":{')),
    _json("escaped zero characters", _times(b'{"key":"', b"\\u0000", b'"}')),
    _json("a masked number at the end", _times(b'{"mails":[', b'"s",', b"1]}")),
    _json("hashed strings that grow", _fields(b'"key":"","mail":"s"')),
]


def _person(mails: bytes = b"\0", by_name: bytes = b"\0", inner: bytes = b"\0", others: bytes = b"\0") -> bytes:
    return b"\0\0" + mails + by_name + inner + b"\0" + others


def _block(item: bytes) -> Callable[[int], bytes]:
    return lambda size: avro_long(size // len(item)) + item * (size // len(item)) + b"\0"


def _deep_records(size: int) -> bytes:
    one = _person()
    for _ in range(90):
        one = _person(inner=b"\2\2" + one + b"\0")
    return _person(inner=_block(b"\2" + one)(size))


_LONGEST = b"\xff" * 9 + b"\1"
_TOO_LONG = b"\x82\x80\x80\x80\0"  # 1, in five bytes

AVRO = [
    _avro("branches in numbers of five bytes", lambda size: _person(mails=_block(_TOO_LONG + b"\2s")(size))),
    _avro("numbers of ten bytes", lambda size: _person(others=_block(b"\2" + _LONGEST)(size))),
    _avro("numbers without an end", lambda size: _person(others=b"\2\2" + b"\xff" * size)),
    _avro("a block with a wrong size", lambda size: _person(mails=avro_long(-size) + avro_long(5) + b"\0" * size)),
    _avro(
        "a block that states more than there is",
        lambda size: _person(mails=avro_long(-1) + avro_long(1 << 40) + b"\0" * size),
    ),
    _avro("blocks of one item", lambda size: _person(mails=b"\2\0" * (size // 2) + b"\0")),
    _avro("blocks of one item with their sizes", lambda size: _person(mails=b"\1\2\0" * (size // 3) + b"\0")),
    _avro("the least count", lambda size: _person(mails=_LONGEST + b"\0" * size)),
    _avro("entries of one key", lambda size: _person(by_name=_block(b"\2a\2\2s")(size))),
    _avro("entries of no key", lambda size: _person(by_name=_block(b"\0\2\0")(size))),
    _avro("records 90 deep", _deep_records),
    _avro("a string of a negative length", lambda size: _person(mails=_block(b"\2\1")(size))),
    _avro("a string of 2^62 bytes", lambda size: _person(mails=b"\2\2" + avro_long(1 << 62) + bytes(size))),
    _avro("doubles", lambda size: _person(others=_block(b"\4" + bytes(8))(size))),
    _avro(
        "an enum that is unknown at the end", lambda size: _person(others=_block(b"\x0c\0")(size)[:-1] + b"\2\x0c\7\0")
    ),
    _avro("bytes after the record", lambda size: _person() + bytes(size)),
    _avro("decimals", lambda size: _person(others=_block(b"\x0a\4\1\1")(size))),
]


def _field(number: int, data: bytes) -> bytes:
    return uvarint(number << 3 | 2) + uvarint(len(data)) + data


def _again(*parts: bytes) -> Callable[[int], bytes]:
    return _times(b"", b"".join(parts), b"")


def _deep_messages(size: int) -> bytes:
    one = b""
    for _ in range(95):
        one = _field(7, one + _field(1, b"s"))
    return one * max(1, size // len(one))


PROTOBUF = [
    _protobuf("numbers of ten bytes", _again(b"\x48" + _LONGEST)),
    _protobuf("tags of five bytes", _again(b"\x8a\x80\x80\x80\0\1s")),
    _protobuf("lengths of five bytes", _again(b"\x0a\x81\x80\x80\x80\0s")),
    _protobuf("empty entries of a map", _again(_field(5, b""))),
    _protobuf("entries with many values", lambda size: _field(5, _field(2, b"s") * (size // 3))),
    _protobuf("entries with many keys", lambda size: _field(6, _field(2, _field(1, b"s")) + b"\x08\1" * (size // 2))),
    _protobuf("one field many times", _again(_field(1, b"s"))),
    _protobuf("a length that is too large", lambda size: b"\x0a" + uvarint(1 << 40) + bytes(size)),
    _protobuf("groups of groups", _again(b"\x9b\x06" * 30, b"\x9c\x06" * 30)),
    _protobuf("packed numbers with half a number", lambda size: _field(9, b"\1" * size + b"\xff")),
    _protobuf("a masked field of another wire type", _again(b"\x08\1")),
    _protobuf("field number 0", _again(b"\0\0")),
    _protobuf("the largest field number", _again(b"\xf8\xff\xff\xff\x0f\1")),
    _protobuf("unknown fixed numbers", _again(b"\xa1\x06" + bytes(8), b"\xa5\x06" + bytes(4))),
    _protobuf("masked fields 95 deep", _deep_messages),
    _protobuf("masked groups", _again(b"\x43\x0a\x01s\x44")),
    _protobuf("extensions without bytes", _again(_field(100, b""))),
    _protobuf("a group that another ends", _again(b"\x43\x4c")),
]

VALUES = [*JSON, *AVRO, *PROTOBUF]
