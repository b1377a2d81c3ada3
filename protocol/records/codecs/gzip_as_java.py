"""Gzip as a broker's GZIPInputStream reads it (RFC 1952), step by step, for payloads with something wrong.

Java inflates 8 KiB of input into 16 KiB of output: what was inflated in the step that fails is lost, what came before
is read. A trailer is looked at only after all data before it was handed out. What follows a member and is no whole
header is ignored.
"""

import zlib
from collections.abc import Iterator

from sluicegate.protocol.records.codecs.codec import Damaged, Odd, Oddity
from sluicegate.protocol.records.codecs.decompression_budget import Bounds

STEP_BYTES = 16 * 1024
_INPUT_BYTES = 8 * 1024
_HEADER_BYTES, _TRAILER_BYTES = 10, 8
_LEAST_FOR_ANOTHER_MEMBER = 26
_FLAGS_AT = 3
_HEADER_CRC, _EXTRA, _NAME, _COMMENT = 0x02, 0x04, 0x08, 0x10
_RAW_DEFLATE = -15
_LARGEST_FLAGS = b"\x1f"  # the bits beyond are reserved
_U32 = 0xFFFFFFFF
_NAME_STEP_BYTES = 1024
# How much slower than others' bytes these come out.
_WORK_OF_OUTPUT = 8


def gzip_as_java(data: memoryview, bounds: Bounds, skip: int) -> Iterator[memoryview]:
    """What comes out behind the first `skip` bytes. Raises Damaged and Odd."""
    position = _deflate_at(data, 0)
    if position is None:
        raise Damaged
    fetched = position
    is_odd = has_reserved_flags(data, 0)
    while True:
        inflater = zlib.decompressobj(_RAW_DEFLATE)
        crc = size = 0
        while not inflater.eof:
            try:
                step = inflater.decompress(data[position:fetched], STEP_BYTES)
            except zlib.error as error:
                raise Damaged from error
            position = fetched - len(inflater.unused_data if inflater.eof else inflater.unconsumed_tail)
            if not step and not inflater.eof:
                if fetched == len(data):
                    raise Damaged
                fetched = min(fetched + _INPUT_BYTES, len(data))
            crc = zlib.crc32(step, crc)
            size += len(step)
            bounds.allowance.worked(_WORK_OF_OUTPUT * len(step) + _INPUT_BYTES)
            if step and skip < len(step):
                yield memoryview(step)[skip:]
            skip = max(skip - len(step), 0)
        yield memoryview(b"")
        trailer = data[position : position + _TRAILER_BYTES]
        if trailer != crc.to_bytes(4, "little") + (size & _U32).to_bytes(4, "little"):
            raise Damaged
        end = position + _TRAILER_BYTES
        following = None
        if fetched < len(data) or len(data) - position > _LEAST_FOR_ANOTHER_MEMBER:
            following = _deflate_at(data, end)
        if following is None:
            if end < len(data):
                raise Odd(Oddity.TRAILING_BYTES)
            if is_odd:
                raise Odd(Oddity.UNVERIFIED)
            return
        is_odd = is_odd or has_reserved_flags(data, end)
        position = following
        fetched = max(fetched, position)


def has_reserved_flags(data: memoryview, start: int) -> bool:
    """Whether the member at `start` sets flags that RFC 1952 reserves: zlib reads none of it, Java ignores them."""
    flags = bytes(data[start + _FLAGS_AT : start + _FLAGS_AT + 1])
    return flags > _LARGEST_FLAGS


def _deflate_at(data: memoryview, start: int) -> int | None:
    """Where the compressed data of the member at `start` begins; None when its header is damaged."""
    head = bytes(data[start : start + _HEADER_BYTES])
    if len(head) < _HEADER_BYTES or head[:3] != b"\x1f\x8b\x08":
        return None
    flags, position = head[_FLAGS_AT], start + _HEADER_BYTES
    if flags & _EXTRA:
        position += 2 + int.from_bytes(data[position : position + 2], "little")
    for flag in (_NAME, _COMMENT):
        if flags & flag:
            end = _zero_from(data, position)
            if end is None:
                return None
            position = end + 1
    if flags & _HEADER_CRC:
        if data[position : position + 2] != (zlib.crc32(data[start:position]) & 0xFFFF).to_bytes(2, "little"):
            return None
        position += 2
    return position if position <= len(data) else None


def _zero_from(data: memoryview, position: int) -> int | None:
    while position < len(data):
        found = bytes(data[position : position + _NAME_STEP_BYTES]).find(0)
        if found >= 0:
            return position + found
        position += _NAME_STEP_BYTES
    return None
