"""Reads and writes varints, and defines the constants of Java's long.

Flexible versions (KIP-482) use unsigned varints of at most five bytes. Records (KIP-98) use zigzag varints.
"""

from sluicegate.protocol.errors import MalformedMessage

_MAX_SHIFT = 28
_ONE_BYTE = tuple(bytes([value]) for value in range(0x80))


def read_unsigned_varint(data: memoryview | bytes | bytearray, position: int) -> tuple[int, int]:
    """Read a varint. Return (value, position after it). Raises MalformedMessage if it is truncated or too long."""
    value = shift = 0
    try:
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, position
            shift += 7
            if shift > _MAX_SHIFT:
                raise MalformedMessage("a varint is longer than five bytes")
    except IndexError:
        raise MalformedMessage("the message ends within a varint") from None


def unsigned_varint(value: int) -> bytes:
    """Return the shortest encoding of `value`, which must not be negative. Values below 2^32 take up to five bytes."""
    if value <= 0x7F:
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def signed_varint(value: int) -> bytes:
    """Return the zigzag encoding of an int64."""
    return unsigned_varint(((value << 1) ^ (ALL_64 if value < 0 else 0)) & ALL_64)


LONG_MAX = 0x7FFF_FFFF_FFFF_FFFF
SIGN_64 = 0x8000_0000_0000_0000
ALL_64 = 0xFFFF_FFFF_FFFF_FFFF
