"""Answers with other addresses where `sluicegate.protocol.node_addresses` found some.

Every other byte stays as it came.
"""

from collections.abc import Sequence
from struct import Struct

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.node_addresses import NodeAddress, NodeList
from sluicegate.protocol.varint import unsigned_varint

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_NO_NODE = -1
_UNAVAILABLE = _INT16.pack(ErrorCode.COORDINATOR_NOT_AVAILABLE)

Told = tuple[str, int] | None
"""What clients are told of one broker, host and port; None: it has no listener here."""


def with_nodes(data: bytes | bytearray, found: NodeList, told: Sequence[Told], flexible: bool) -> tuple[Parts, int]:
    """`data`, in parts, with each listed broker at its told address, and how many are left: those with none are not."""
    view = memoryview(data)
    kept = len(told) - told.count(None)
    parts: list[bytes | memoryview] = [view[: found.count_at], _count(kept, flexible)]
    copied_to = found.first_at
    for node, address in zip(found.nodes, told, strict=True):
        if address is None:
            parts.append(view[copied_to : node.start])
            copied_to = node.end
        else:
            parts += (view[copied_to : node.host_at], _address(*address, flexible))
            copied_to = node.behind_port
    parts.append(view[copied_to:])
    return parts, kept


def with_coordinators(
    data: bytes | bytearray, found: Sequence[NodeAddress], told: Sequence[Told], flexible: bool
) -> Parts:
    """`data`, in parts, with each coordinator at its told address; one without becomes COORDINATOR_NOT_AVAILABLE."""
    view = memoryview(data)
    nowhere = _INT32.pack(_NO_NODE) + _address("", -1, flexible)
    written = {address: _address(*address, flexible) for address in set(told) if address is not None}
    parts: list[bytes | memoryview] = []
    copied_to = 0
    for node, address in zip(found, told, strict=True):
        if address is not None:
            parts += (view[copied_to : node.host_at], written[address])
            copied_to = node.behind_port
            continue
        patches = [(node.node_at, node.behind_port, nowhere), (node.error_at, node.error_at + 2, _UNAVAILABLE)]
        for start, end, patch in sorted(patches):
            parts += (view[copied_to:start], patch)
            copied_to = end
    parts.append(view[copied_to:])
    return parts


def _count(count: int, flexible: bool) -> bytes:
    return unsigned_varint(count + 1) if flexible else _INT32.pack(count)


def _address(host: str, port: int, flexible: bool) -> bytes:
    data = host.encode()
    length = unsigned_varint(len(data) + 1) if flexible else _INT16.pack(len(data))
    return length + data + _INT32.pack(port)
