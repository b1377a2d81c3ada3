"""What a broker's GZIPInputStream still hands out of a damaged gzip payload (RFC 1952).

Only called for payloads that are known to be damaged. Java inflates into a buffer of 16 KiB: what was inflated in
the step that fails is lost, what came before is read; the trailer is looked at only after all data was handed out.
isal keeps nothing of a failing call and checks the trailer in it, so this is done with zlib.
"""

import zlib

_STEP_BYTES = 16 * 1024
_HEADER_BYTES = 10
_FLAGS_AT = 3
_HEADER_CRC, _EXTRA, _NAME, _COMMENT = 0x02, 0x04, 0x08, 0x10
_RAW_DEFLATE = -15


def gzip_before_damage(data: memoryview, limit: int) -> bytes:
    """The bytes (at most `limit`) that come out of the first member before the damage is met."""
    start = _deflate_at(bytes(data[: 64 * 1024]))
    if start is None:
        return b""
    inflater = zlib.decompressobj(_RAW_DEFLATE)
    out = bytearray()
    rest: bytes | memoryview = data[start:]
    while len(out) < limit and not inflater.eof:
        try:
            step = inflater.decompress(rest, _STEP_BYTES)
        except zlib.error:
            break
        rest = inflater.unconsumed_tail
        if not step and not rest:
            break
        out += step
    return bytes(out[:limit])


def _deflate_at(head: bytes) -> int | None:
    """Where the compressed data starts behind the member's header; None when the header is damaged."""
    if len(head) < _HEADER_BYTES or head[:3] != b"\x1f\x8b\x08":
        return None
    flags, position = head[_FLAGS_AT], _HEADER_BYTES
    if flags & _EXTRA:
        position += 2 + int.from_bytes(head[position : position + 2], "little")
    for flag in (_NAME, _COMMENT):
        if flags & flag:
            end = head.find(b"\0", position)
            if end < 0:
                return None
            position = end + 1
    return position + (2 if flags & _HEADER_CRC else 0)
