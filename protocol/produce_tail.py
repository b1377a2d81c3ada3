"""The end of a Produce answer, versions 10 to 13, walked and written by hand: throttle time and tagged fields.

    throttle_time int32 | tag count | { tag | size | bytes } ...
    tag 0, node endpoints (KIP-951): count + 1 | { node_id int32 | host | port int32 | rack | tags } ...

A broker names endpoints where a partition's leader has moved. Only hosts and ports are written anew; what else is there
goes on as it came. Held to the construct schema by a test.
"""

from collections.abc import Callable
from struct import Struct

from protocol.errors import MalformedMessage
from protocol.headers import skip_tagged_fields
from protocol.varint import read_unsigned_varint, unsigned_varint

_INT32 = Struct(">i")
_ENDPOINTS_TAG = 0

AddressOf = Callable[[int, str, int], tuple[str, int] | None]
"""(node id, host, port) to what a client is told; None: the endpoint is left out."""


def with_addresses(tail: bytes, address_of: AddressOf) -> bytes:
    """The same tail with other addresses in its node endpoints. Raises MalformedMessage."""
    count, position = read_unsigned_varint(tail, _INT32.size)
    parts: list[bytes] = []
    kept = 0
    for _ in range(count):
        start = position
        tag, position = read_unsigned_varint(tail, position)
        size, position = read_unsigned_varint(tail, position)
        end = position + size
        if end > len(tail):
            raise MalformedMessage("a tagged field runs over the end of the answer")
        field = tail[start:end] if tag != _ENDPOINTS_TAG else _endpoints_field(tail[position:end], address_of)
        kept += bool(field)
        parts.append(field)
        position = end
    return b"".join((tail[: _INT32.size], unsigned_varint(kept), *parts))


def _endpoints_field(data: bytes, address_of: AddressOf) -> bytes:
    """The tagged field with its tag and size; nothing when no endpoint is left."""
    length, position = read_unsigned_varint(data, 0)
    kept: list[bytes] = []
    for _ in range(length - 1):
        node_id, position = _int32(data, position)
        host, position = _string(data, position)
        port, position = _int32(data, position)
        rest_at = position
        position = skip_tagged_fields(data, _string(data, position)[1])
        told = address_of(node_id, (host or b"").decode("utf-8", "replace"), port)
        if told is not None:
            ours = told[0].encode()
            address = unsigned_varint(len(ours) + 1) + ours + _INT32.pack(told[1])
            kept.append(_INT32.pack(node_id) + address + data[rest_at:position])
    if not kept:
        return b""
    value = unsigned_varint(len(kept) + 1) + b"".join(kept)
    return unsigned_varint(_ENDPOINTS_TAG) + unsigned_varint(len(value)) + value


def _int32(data: bytes, position: int) -> tuple[int, int]:
    end = position + _INT32.size
    if end > len(data):
        raise MalformedMessage("a node endpoint ends too early")
    return _INT32.unpack_from(data, position)[0], end


def _string(data: bytes, position: int) -> tuple[bytes | None, int]:
    length, start = read_unsigned_varint(data, position)
    end = start + max(length - 1, 0)
    if end > len(data):
        raise MalformedMessage("a node endpoint ends too early")
    return (data[start:end] if length else None), end
