"""Converts a record to an expression's variables, for the CEL runtime.

The runtime's binding truncates strings and `bytes` at their first zero byte. Bytes are therefore passed as bytearray. A
string with a zero byte is passed as an object that looks like a google.protobuf.StringValue, which CEL reads as a
string.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from sluicegate.validation.rules.json.plan import is_ordinary_json
from sluicegate.validation.rules.json.text import WELL_FORMED, JsonFault, fault_in, fault_kind
from sluicegate.validation.rules.rule import Client, Header
from sluicegate.validation.rules.schemas.conditions import Clock
from sluicegate.validation.rules.schemas.wire_format import data_after_id, has_schema_id

MAX_DEPTH = 100
"""The maximum nesting depth of arrays and objects in a value."""
_NS_OF_SECOND: Final = 1_000_000_000

CLIENT_FIELDS = {
    "id": "client_id",
    "software": "software_name",
    "version": "software_version",
    "principal": "principal",
    "address": "address",
}
"""The fields of `client` in expressions, and the corresponding attributes of Client."""


class ValueUnreadable(Exception):
    """Raised if a value cannot be converted completely. The message gives the reason, without quoting the value."""


class NotOfSchema(Exception):
    """Raised if bytes do not follow the schema. The rule for the schema reports this."""


class _StringValue:
    full_name = "google.protobuf.StringValue"


class TextWithZero(str):
    """A string with a zero byte. Its message type and wire format let the runtime read it completely."""

    __slots__ = ()
    DESCRIPTOR = _StringValue

    def SerializePartialToString(self) -> bytes:  # noqa: N802  # Protobuf's name
        """Return the message, with the string in field 1."""
        text = self.encode()
        size = len(text)
        head = bytearray(b"\x0a")
        while size >= 0x80:
            head.append(size & 0x7F | 0x80)
            size >>= 7
        head.append(size)
        return bytes(head) + text


def time_of(now: Clock) -> Any:
    """Return a clock's time, for the variable `now`."""
    seconds, nanos = divmod(now(), _NS_OF_SECOND)
    return import_module("google.protobuf.timestamp_pb2").Timestamp(seconds=seconds, nanos=nanos)


def text_of(data: bytes | None) -> str | bytearray | None:
    """Return a key or a header value as a string, or as bytes if it is not UTF-8."""
    if data is None:
        return None
    try:
        return complete_text(data.decode())
    except UnicodeDecodeError:
        return bytearray(data)


def headers_of(headers: tuple[Header, ...]) -> dict[str, str | bytearray | None]:
    """Return the last value of each name. Omits names that are not UTF-8, because no expression can contain them."""
    seen: dict[str, str | bytearray | None] = {}
    for name, value in headers:
        text = text_of(name)
        if isinstance(text, str):
            seen[text] = text_of(value)
    return seen


def client_of(client: Client) -> dict[str, str | None]:
    """Return what is known about a client, by the names in expressions."""
    known = {name: getattr(client, attribute) for name, attribute in CLIENT_FIELDS.items()}
    return {name: None if text is None else complete_text(_encodable(text)) for name, text in known.items()}


def value_of(value: bytes | None, loads: Callable[[bytes], Any]) -> Any:
    """Return a value's parsed JSON, or the bytes if it is not JSON. Raises ValueUnreadable.

    A schema id before the JSON is skipped. `loads` is orjson's function. An integer becomes an int. A number beyond 64
    bits, or with a fraction or exponent, becomes a double.
    """
    if value is None:
        return None
    text = data_after_id(value) if has_schema_id(value) else value  # no JSON begins with a zero byte
    if not is_ordinary_json(text, MAX_DEPTH):
        fault = fault_in(text, MAX_DEPTH)
        if fault != WELL_FORMED and fault_kind(fault) == JsonFault.TOO_DEEP:
            raise ValueUnreadable(f"JSON nested more than {MAX_DEPTH} levels deep")
        if fault != WELL_FORMED:
            return bytearray(value)
    try:
        said = loads(text)
    except ValueError:
        raise ValueUnreadable("JSON with a number outside the range of a double, or with a lone surrogate") from None
    return complete_texts_in(said) if rb"\u0000" in text else said


def _encodable(text: str) -> str:
    """Replace each lone surrogate with a question mark. A token may contain them."""
    return text.encode(errors="replace").decode()


def complete_text(text: str) -> str:
    """Return a string that the runtime reads completely, even after a zero byte."""
    return TextWithZero(text) if "\0" in text else text


def complete_texts_in(said: Any) -> Any:
    """Return a JSON value with strings that the runtime reads completely."""
    if isinstance(said, str):
        return complete_text(said)
    if isinstance(said, list):
        return [complete_texts_in(item) for item in said]
    if isinstance(said, dict):
        return {complete_text(name): complete_texts_in(item) for name, item in said.items()}
    return said
