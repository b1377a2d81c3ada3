"""The lz4 frame format as a broker's Lz4BlockInputStream reads it: block by block, each handed out when it is whole.

It looks neither at the content size nor at the content checksum (but wants its bytes to be there), stops at the end
mark whatever follows, and reads no linked blocks.
"""

from functools import lru_cache
from struct import Struct

import cramjam
import lz4.frame

from protocol.records.plain_buffer import PlainBuffer

_MAGIC = b"\x04\x22\x4d\x18"
# Linked blocks, dictionaries and reserved bits are none of a broker's.
_KNOWN_FLAGS = 0b0010_0011
_INDEPENDENT_BLOCKS = 0b0010_0000
_BLOCK_SIZE = Struct("<I")
_FLAGS_AT, _DESCRIPTOR_AT = 4, 5
_HEAD_BYTES = 7  # magic, flags, descriptor and their checksum; a content size stands before the checksum
_BLOCK_CHECKSUM, _CONTENT_SIZE, _CONTENT_CHECKSUM = 0x10, 0x08, 0x04
_CONTENT_SIZE_BYTES = 8
_CHECKSUM_BYTES = 4
_UNCOMPRESSED = 0x8000_0000
_END_MARK = bytes(4)


class DamagedFrame(Exception):
    """The frame does not go on as it should."""


def read_lz4_frame(data: memoryview, plain: PlainBuffer) -> None:
    """Decompress one frame into `plain`. Raises DamagedFrame with the blocks before the damage done, and OverLimit."""
    if not _is_for_brokers(data):
        raise DamagedFrame
    flags = data[_FLAGS_AT]
    block_bytes = 1 << (8 + 2 * (data[_DESCRIPTOR_AT] >> 4 & 7))
    with_checksum = _OneBlockFrames(data) if flags & _BLOCK_CHECKSUM else None
    position = _DESCRIPTOR_AT + 1 + (_CONTENT_SIZE_BYTES if flags & _CONTENT_SIZE else 0) + 1
    while position + _BLOCK_SIZE.size <= len(data):
        (size,) = _BLOCK_SIZE.unpack_from(data, position)
        if size & ~_UNCOMPRESSED == 0:
            needed = _CHECKSUM_BYTES if flags & _CONTENT_CHECKSUM else 0
            if position + _BLOCK_SIZE.size + needed > len(data):
                break
            return
        start = position + _BLOCK_SIZE.size
        position = start + (size & ~_UNCOMPRESSED) + (_CHECKSUM_BYTES if with_checksum is not None else 0)
        if position > len(data):
            break
        if with_checksum is not None:
            plain.add(with_checksum.read(data[start - _BLOCK_SIZE.size : position]))
        elif size & _UNCOMPRESSED:
            if position - start > block_bytes:
                break
            plain.add(data[start:position])
        else:
            room = plain.room(block_bytes)[:block_bytes]
            try:
                size = cramjam.lz4.decompress_block_into(data[start:position], room, output_len=block_bytes)
            except cramjam.DecompressionError as error:
                raise DamagedFrame from error
            plain.wrote(size)
    raise DamagedFrame


def _is_for_brokers(data: memoryview) -> bool:
    """Whether a payload opens as a frame that brokers read."""
    if len(data) <= _HEAD_BYTES or data[: len(_MAGIC)] != _MAGIC:
        return False
    flags = data[_FLAGS_AT]
    if flags & _KNOWN_FLAGS != _INDEPENDENT_BLOCKS:
        return False
    if flags & _CONTENT_SIZE:
        return _is_right_head(data[: _HEAD_BYTES + _CONTENT_SIZE_BYTES])
    return _is_right_short_head(bytes(data[:_HEAD_BYTES]))


def _is_right_head(head: bytes | memoryview) -> bool:
    """Whether its block size exists and its checksum is right."""
    try:
        lz4.frame.get_frame_info(head)
    except RuntimeError:
        return False
    return True


# Producers write one and the same head before every batch.
_is_right_short_head = lru_cache(maxsize=256)(_is_right_head)


class _OneBlockFrames:
    """Reads blocks with checksums: each as a frame of its own, whose head has neither content size nor checksum."""

    def __init__(self, data: memoryview) -> None:
        compressor = lz4.frame.LZ4FrameCompressor(
            block_size=data[_DESCRIPTOR_AT] >> 4 & 7, block_linked=False, block_checksum=True
        )
        self._head = bytes(compressor.begin())

    def read(self, block: memoryview) -> bytes:
        """The plain bytes of a block with its size and checksum. Raises DamagedFrame."""
        try:
            return bytes(lz4.frame.decompress(self._head + bytes(block) + _END_MARK))
        except RuntimeError as error:
            raise DamagedFrame from error
