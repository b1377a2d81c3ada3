"""Parses elements of DER (X.690), the encoding of certificates."""

from typing import NamedTuple

_LONG_FORM = 0x80
_MAX_LENGTH_BYTES = 4
_MULTI_BYTE_TAG = 0x1F


class DerElement(NamedTuple):
    """One element. `encoding` is the whole element with its tag and length."""

    tag: int
    content: bytes
    encoding: bytes


def element_at(data: bytes, position: int) -> DerElement:
    """Return the element that begins at `position`. Raises ValueError if it is incomplete or not DER."""
    head = data[position : position + 2]
    if len(head) < 2 or head[0] & _MULTI_BYTE_TAG == _MULTI_BYTE_TAG:
        raise ValueError(f"no DER element at byte {position}")
    begins, size = position + 2, head[1]
    if size & _LONG_FORM:
        count = size & ~_LONG_FORM
        if not 0 < count <= _MAX_LENGTH_BYTES:
            raise ValueError(f"a length of {count} bytes at byte {position}")
        size = int.from_bytes(data[begins : begins + count])
        begins += count
    ends = begins + size
    if ends > len(data):
        raise ValueError(f"an element of {size} bytes at byte {position} is cut off")
    return DerElement(head[0], data[begins:ends], data[position:ends])


def children_of(element: DerElement) -> list[DerElement]:
    """Return the elements inside a constructed element. Raises ValueError."""
    found, position = [], 0
    while position < len(element.content):
        child = element_at(element.content, position)
        found.append(child)
        position += len(child.encoding)
    return found
