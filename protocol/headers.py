"""Reads and writes request headers v0, v1, v2 and response headers v0, v1.

Requests: version 0 has no client id (only ControlledShutdown v0 used it). Version 1 adds the client id. Version 2
(flexible requests) ends with tagged fields, but keeps the int16 length of the client id, so that any broker can read
the header of any ApiVersions request.

Responses: version 0 is only the correlation id. Version 1 (flexible) adds tagged fields.

The code does not use construct, because every request has a header.
"""

from dataclasses import dataclass
from struct import Struct

from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.walk import MAX_TAGGED_FIELDS, Walk

_FIXED = Struct(">hhi")
_LENGTH = Struct(">h")
_CORRELATION_ID = Struct(">i")

HEAD_BYTES = _FIXED.size
CORRELATION_ID_BYTES = _CORRELATION_ID.size
# In Kafka 4.4, no header contains a tagged field.
MAX_TAGGED_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """A request's header. `body_at` is the position of the body in the frame (bytes)."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_at: int


def read_request_head(head: bytes | bytearray | memoryview) -> tuple[int, int, int]:
    """Return (api key, version, correlation id) from the first 8 bytes of a request."""
    return _FIXED.unpack_from(head)


def parse_request_header(frame: bytes | bytearray | memoryview, header_version: int) -> RequestHeader:
    """Parse the header of a whole request frame (without its size). Raises MalformedMessage if it is truncated."""
    if len(frame) < _FIXED.size:
        raise MalformedMessage(f"a request of {len(frame)} bytes is shorter than its header")
    api_key, api_version, correlation_id = _FIXED.unpack_from(frame)
    if header_version == 0:
        return RequestHeader(api_key, api_version, correlation_id, None, _FIXED.size)
    client_id, position = _read_client_id(frame, _FIXED.size)
    if header_version >= 2:
        position = skip_tagged_fields(frame, position)
    return RequestHeader(api_key, api_version, correlation_id, client_id, position)


def build_request_header(api_key: int, api_version: int, correlation_id: int, client_id: str, version: int) -> bytes:
    """Return a request header of `version` 1 or 2 without tagged fields."""
    name = client_id.encode()
    tags = b"\0" if version >= 2 else b""
    return _FIXED.pack(api_key, api_version, correlation_id) + _LENGTH.pack(len(name)) + name + tags


def read_correlation_id(frame: bytes | bytearray | memoryview) -> int:
    """Return the correlation id of a response."""
    value: int = _CORRELATION_ID.unpack_from(frame)[0]
    return value


def response_body_at(frame: bytes | bytearray | memoryview, header_version: int) -> int:
    """Return the position of a response's body in its frame (bytes)."""
    if len(frame) < _CORRELATION_ID.size:
        raise MalformedMessage(f"a response of {len(frame)} bytes is shorter than its header")
    return skip_tagged_fields(frame, _CORRELATION_ID.size) if header_version >= 1 else _CORRELATION_ID.size


def build_response_header(correlation_id: int, header_version: int) -> bytes:
    """Return a response header without tagged fields."""
    return _CORRELATION_ID.pack(correlation_id) + (b"\0" if header_version >= 1 else b"")


def skip_tagged_fields(data: bytes | bytearray | memoryview, position: int) -> int:
    """Return the position after a header's tagged fields, which begin at `position`.

    Raises MalformedMessage if they are truncated, or if there are more than any header has.
    """
    if data[position : position + 1] == b"\0":  # the usual case
        return position + 1
    tags = bytes(data[position : position + MAX_TAGGED_BYTES])
    walk = Walk()
    walk.begin(tags, 0, True, 0, 0, MAX_TAGGED_FIELDS)
    try:
        walk.skip_tags()
    except MalformedMessage as error:
        if len(tags) == MAX_TAGGED_BYTES:
            raise MalformedMessage(f"tagged fields of more than {MAX_TAGGED_BYTES} bytes: {error}") from error
        raise
    return position + walk.position


def _read_client_id(frame: bytes | bytearray | memoryview, position: int) -> tuple[str | None, int]:
    if len(frame) < position + _LENGTH.size:
        raise MalformedMessage("the request ends within its header")
    (length,) = _LENGTH.unpack_from(frame, position)
    position += _LENGTH.size
    if length < 0:
        return None, position
    if len(frame) < position + length:
        raise MalformedMessage("the request ends within its client id")
    return bytes(frame[position : position + length]).decode("utf-8", "replace"), position + length
