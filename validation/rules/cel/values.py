"""What an expression of CEL sees of a record: Python values that the runtime makes its own values of.

The runtime's binding reads texts up to their first zero byte, and `bytes` too. So bytes are given as bytearray, and a
text with a zero byte as what it takes for a google.protobuf.StringValue, which CEL reads as the text.
"""

from collections.abc import Callable
from typing import Any

from sluicegate.validation.rules.json.plan import is_ordinary_json
from sluicegate.validation.rules.json.text import WELL_FORMED, Fault, fault_in, which
from sluicegate.validation.rules.rule import Client, Header
from sluicegate.validation.rules.schemas.wire_format import behind_id, has_schema_id

MAX_DEPTH = 100
"""Levels of arrays and objects that an expression sees."""


CLIENT_FIELDS = {
    "id": "client_id",
    "software": "software_name",
    "version": "software_version",
    "principal": "principal",
    "address": "address",
}
"""What an expression calls what is known of a client, and where it is."""


class ValueUnreadable(Exception):
    """A value is JSON, of which an expression cannot see all; the text says why, without quoting the value."""


class _StringValue:
    full_name = "google.protobuf.StringValue"


class TextWithZero(str):
    """A text with a zero byte, as the runtime takes it whole: by its message type and its wire format."""

    __slots__ = ()
    DESCRIPTOR = _StringValue

    def SerializePartialToString(self) -> bytes:  # noqa: N802  # Protobuf's name
        """Return the message: field 1 holds the text."""
        text = self.encode()
        size = len(text)
        head = bytearray(b"\x0a")
        while size >= 0x80:
            head.append(size & 0x7F | 0x80)
            size >>= 7
        head.append(size)
        return bytes(head) + text


def text_of(data: bytes | None) -> str | bytearray | None:
    """Return the text of a key or a header's value; bytes where it is not UTF-8."""
    if data is None:
        return None
    try:
        return _whole(data.decode())
    except UnicodeDecodeError:
        return bytearray(data)


def headers_of(headers: tuple[Header, ...]) -> dict[str, str | bytearray | None]:
    """Return the last value of each name. A name that is not UTF-8 is left out: no expression can write it down."""
    seen: dict[str, str | bytearray | None] = {}
    for name, value in headers:
        text = text_of(name)
        if isinstance(text, str):
            seen[text] = text_of(value)
    return seen


def client_of(client: Client) -> dict[str, str | None]:
    """Return what is known of a client by the names that an expression knows."""
    known = {name: getattr(client, attribute) for name, attribute in CLIENT_FIELDS.items()}
    return {name: None if text is None else _whole(_encodable(text)) for name, text in known.items()}


def value_of(value: bytes | None, loads: Callable[[bytes], Any]) -> Any:
    """Return what a value's JSON says, also behind a schema's id; bytes where it is no JSON. Raises ValueUnreadable.

    `loads`: orjson's. A whole number is an int, beyond 64 bits a double, as any number with a fraction or an exponent.
    """
    if value is None:
        return None
    text = behind_id(value) if has_schema_id(value) else value  # a zero byte begins no JSON
    if not is_ordinary_json(text, MAX_DEPTH):
        fault = fault_in(text, MAX_DEPTH)
        if fault != WELL_FORMED and which(fault) == Fault.TOO_DEEP:
            raise ValueUnreadable(f"nested more than {MAX_DEPTH} levels deep")
        if fault != WELL_FORMED:
            return bytearray(value)
    try:
        said = loads(text)
    except ValueError:
        raise ValueUnreadable("with a number beyond what a double holds, or half a character") from None
    return _all_whole(said) if rb"\u0000" in text else said


def _encodable(text: str) -> str:
    """Return it with a question mark in place of each lone surrogate, which a token may name."""
    return text.encode(errors="replace").decode()


def _whole(text: str) -> str:
    return TextWithZero(text) if "\0" in text else text


def _all_whole(said: Any) -> Any:
    if isinstance(said, str):
        return _whole(said)
    if isinstance(said, list):
        return [_all_whole(item) for item in said]
    if isinstance(said, dict):
        return {_whole(name): _all_whole(item) for name, item in said.items()}
    return said
