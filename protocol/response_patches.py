"""Patches brokers' responses with other addresses, or with a longer throttle time. Other bytes stay unchanged.

The end of a Produce response, versions 10 to 13, is walked here without construct:

throttle_time int32 | tag count | { tag | size | bytes } ...
tag 0, node endpoints (KIP-951): count + 1 | { node_id int32 | host | port int32 | rack | tags } ...

A broker sends endpoints if the leader of a partition has moved. A test compares the result with the construct schema.
"""

from collections.abc import Callable, Sequence
from struct import Struct

from sluicegate.protocol.errors import ErrorCode, MalformedMessage
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.integers import unsigned_varint
from sluicegate.protocol.produce_response import produce_body_at, tail_at
from sluicegate.protocol.produce_versions import THROTTLE_SINCE
from sluicegate.protocol.response_walks import NodeAddress, NodeList, endpoints_in_tag
from sluicegate.protocol.walk import tagged_fields

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_NO_NODE = -1
_UNAVAILABLE = _INT16.pack(ErrorCode.COORDINATOR_NOT_AVAILABLE)
_THROTTLE_BYTES = 4
_ENDPOINTS_TAG = 0

NewAddress = tuple[str, int] | None
"""The host and port that clients receive for a broker. None if the broker has no listener here."""

AddressOf = Callable[[int, str, int], NewAddress]
"""Maps (node id, host, port) to the new address, or to None if the endpoint is omitted."""


def with_nodes(
    data: bytes | bytearray, found: NodeList, addresses: Sequence[NewAddress], flexible: bool
) -> tuple[Parts, int]:
    """Return `data`, in parts, with each listed broker at its new address, and the number of brokers that remain.

    Brokers without a new address are omitted.
    """
    view = memoryview(data)
    kept = len(addresses) - addresses.count(None)
    parts: list[bytes | memoryview] = [view[: found.count_at], _count(kept, flexible)]
    copied_to = found.first_at
    for node, address in zip(found.nodes, addresses, strict=True):
        if address is None:
            parts.append(view[copied_to : node.start])
            copied_to = node.end
        else:
            parts += (view[copied_to : node.host_at], _address(*address, flexible))
            copied_to = node.port_end
    parts.append(view[copied_to:])
    return parts, kept


def with_coordinators(
    data: bytes | bytearray, found: Sequence[NodeAddress], addresses: Sequence[NewAddress], flexible: bool
) -> Parts:
    """Return `data`, in parts, with each coordinator at its new address.

    A coordinator without a new address is replaced by the error COORDINATOR_NOT_AVAILABLE.
    """
    view = memoryview(data)
    nowhere = _INT32.pack(_NO_NODE) + _address("", -1, flexible)
    written = {address: _address(*address, flexible) for address in set(addresses) if address is not None}
    parts: list[bytes | memoryview] = []
    copied_to = 0
    for node, address in zip(found, addresses, strict=True):
        if address is not None:
            parts += (view[copied_to : node.host_at], written[address])
            copied_to = node.port_end
            continue
        patches = [(node.node_at, node.port_end, nowhere), (node.error_at, node.error_at + 2, _UNAVAILABLE)]
        for start, end, patch in sorted(patches):
            parts += (view[copied_to:start], patch)
            copied_to = end
    parts.append(view[copied_to:])
    return parts


def with_throttle_time(response: bytearray, version: int, throttle_ms: int) -> bytearray:
    """Set the throttle time in a Produce response (a frame without its size) to at least `throttle_ms`.

    Version 0 has no throttle time and stays unchanged. Raises MalformedMessage.
    """
    if version >= THROTTLE_SINCE:
        at = tail_at(response, version, produce_body_at(response, version))
        if len(response) - at < _INT32.size:
            raise MalformedMessage(f"Produce response v{version}: it ends before its throttle time")
        longest = max(throttle_ms, _INT32.unpack_from(response, at)[0])
        _INT32.pack_into(response, at, longest)
    return response


def with_addresses(tail: bytes, address_of: AddressOf) -> bytes:
    """Return a Produce response's tail with other addresses in its node endpoints. Raises MalformedMessage."""
    parts: list[bytes] = []
    for tag, start, value_at, end in tagged_fields(tail, _THROTTLE_BYTES):
        field = tail[start:end] if tag != _ENDPOINTS_TAG else _endpoints_field(tail[value_at:end], address_of)
        if field:
            parts.append(field)
    return b"".join((tail[:_THROTTLE_BYTES], unsigned_varint(len(parts)), *parts))


def _endpoints_field(value: bytes, address_of: AddressOf) -> bytes:
    """Return the tagged field with its tag and size. It is empty if no endpoint is left."""
    found = endpoints_in_tag(value)
    addresses = [address_of(node.node_id, node.host, node.port) for node in found.nodes]
    parts, kept = with_nodes(value, found, addresses, flexible=True)
    if not kept:
        return b""
    changed = b"".join(parts)
    return unsigned_varint(_ENDPOINTS_TAG) + unsigned_varint(len(changed)) + changed


def _count(count: int, flexible: bool) -> bytes:
    return unsigned_varint(count + 1) if flexible else _INT32.pack(count)


def _address(host: str, port: int, flexible: bool) -> bytes:
    data = host.encode()
    length = unsigned_varint(len(data) + 1) if flexible else _INT16.pack(len(data))
    return length + data + _INT32.pack(port)
