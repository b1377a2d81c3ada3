"""The end of a Produce answer, versions 10 to 13, walked and written by hand: throttle time and tagged fields.

    throttle_time int32 | tag count | { tag | size | bytes } ...
    tag 0, node endpoints (KIP-951): count + 1 | { node_id int32 | host | port int32 | rack | tags } ...

A broker names endpoints where a partition's leader has moved. Only hosts and ports are written anew; what else is there
goes on as it came. Held to the construct schema by a test.
"""

from collections.abc import Callable
from struct import Struct

from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.headers import response_body_at
from sluicegate.protocol.node_addresses import endpoints_in_tag
from sluicegate.protocol.produce_response import tail_at
from sluicegate.protocol.produce_versions import FLEXIBLE_SINCE, THROTTLE_SINCE
from sluicegate.protocol.readdressing import with_nodes
from sluicegate.protocol.varint import unsigned_varint
from sluicegate.protocol.walk import tagged_fields

_INT32 = Struct(">i")


def with_throttle_time(answer: bytearray, version: int, throttle_ms: int) -> bytearray:
    """The answer (a frame without its size), in which a client is told to wait for so long at least; version 0 has no
    word for it. Raises MalformedMessage.
    """
    if version >= THROTTLE_SINCE:
        at = tail_at(answer, version, response_body_at(answer, 1 if version >= FLEXIBLE_SINCE else 0))
        if len(answer) - at < _INT32.size:
            raise MalformedMessage(f"Produce answer v{version}: it ends before its throttle time")
        told = max(throttle_ms, _INT32.unpack_from(answer, at)[0])
        _INT32.pack_into(answer, at, told)
    return answer


_THROTTLE_BYTES = 4
_ENDPOINTS_TAG = 0

AddressOf = Callable[[int, str, int], tuple[str, int] | None]
"""(node id, host, port) to what a client is told; None: the endpoint is left out."""


def with_addresses(tail: bytes, address_of: AddressOf) -> bytes:
    """The same tail with other addresses in its node endpoints. Raises MalformedMessage."""
    parts: list[bytes] = []
    for tag, start, value_at, end in tagged_fields(tail, _THROTTLE_BYTES):
        field = tail[start:end] if tag != _ENDPOINTS_TAG else _endpoints_field(tail[value_at:end], address_of)
        if field:
            parts.append(field)
    return b"".join((tail[:_THROTTLE_BYTES], unsigned_varint(len(parts)), *parts))


def _endpoints_field(value: bytes, address_of: AddressOf) -> bytes:
    """The tagged field with its tag and size; nothing when no endpoint is left."""
    found = endpoints_in_tag(value)
    told = [address_of(node.node_id, node.host, node.port) for node in found.nodes]
    parts, kept = with_nodes(value, found, told, flexible=True)
    if not kept:
        return b""
    changed = b"".join(parts)
    return unsigned_varint(_ENDPOINTS_TAG) + unsigned_varint(len(changed)) + changed
