"""The lz4 frame format as a broker's Lz4BlockInputStream reads it: block by block, each handed out when it is whole.

It looks neither at the content size nor at the content checksum (but wants its bytes to be there), stops at the end
mark whatever follows, and reads no linked blocks.
"""

from collections.abc import Iterator
from functools import lru_cache
from struct import Struct

import cramjam
import lz4.frame

from sluicegate.protocol.records.pieces import Damaged, Piece
from sluicegate.protocol.records.plain_buffer import PlainBuffer

_MAGIC = b"\x04\x22\x4d\x18"
# Linked blocks, dictionaries and reserved bits are none of a broker's.
_KNOWN_FLAGS = 0b1110_0011
_VERSION_1_INDEPENDENT_BLOCKS = 0b0110_0000
_BLOCK_SIZE_CODES = frozenset({0x40, 0x50, 0x60, 0x70})
_BLOCK_SIZE = Struct("<I")
_FLAGS_AT, _DESCRIPTOR_AT = 4, 5
_HEAD_BYTES = 7  # magic, flags, descriptor and their checksum; a content size stands before the checksum
_BLOCK_CHECKSUM, _CONTENT_SIZE, _CONTENT_CHECKSUM = 0x10, 0x08, 0x04
_CONTENT_SIZE_BYTES = 8
_CHECKSUM_BYTES = 4
_UNCOMPRESSED = 0x8000_0000


def lz4_pieces(data: memoryview, buffer: PlainBuffer, magic: int) -> Iterator[Piece]:
    """Each block of one frame in a batch of `magic`. Raises Damaged."""
    if not _is_for_brokers(data, magic):
        raise Damaged
    flags = data[_FLAGS_AT]
    block_bytes = 1 << (8 + 2 * (data[_DESCRIPTOR_AT] >> 4 & 7))
    checked = _CheckedBlocks(data[_DESCRIPTOR_AT] >> 4 & 7, block_bytes) if flags & _BLOCK_CHECKSUM else None
    position = _DESCRIPTOR_AT + 1 + (_CONTENT_SIZE_BYTES if flags & _CONTENT_SIZE else 0) + 1
    while position + _BLOCK_SIZE.size <= len(data):
        (size,) = _BLOCK_SIZE.unpack_from(data, position)
        if size & ~_UNCOMPRESSED == 0:
            needed = _CHECKSUM_BYTES if flags & _CONTENT_CHECKSUM else 0
            if position + _BLOCK_SIZE.size + needed > len(data):
                break
            return
        start = position + _BLOCK_SIZE.size
        position = start + (size & ~_UNCOMPRESSED) + (_CHECKSUM_BYTES if checked is not None else 0)
        if position > len(data):
            break
        if checked is not None:
            yield checked.read(data[start - _BLOCK_SIZE.size : position])
        elif size & _UNCOMPRESSED:
            if position - start > block_bytes:
                break
            yield data[start:position]
        else:
            room = buffer.room(block_bytes)
            try:
                size = cramjam.lz4.decompress_block_into(
                    data[start:position], room[:block_bytes], output_len=block_bytes
                )
            except cramjam.DecompressionError as error:
                raise Damaged from error
            yield room[:size]
    raise Damaged


def _is_for_brokers(data: memoryview, magic: int) -> bool:
    """Whether a payload opens as a frame that brokers read."""
    if len(data) <= _HEAD_BYTES or data[: len(_MAGIC)] != _MAGIC:
        return False
    flags = data[_FLAGS_AT]
    if flags & _KNOWN_FLAGS != _VERSION_1_INDEPENDENT_BLOCKS or data[_DESCRIPTOR_AT] not in _BLOCK_SIZE_CODES:
        return False
    if magic == 0:  # its writers computed the header's checksum over the wrong bytes, so nobody looks (KAFKA-3160)
        return True
    if flags & _CONTENT_SIZE:
        return _is_right_head(data[: _HEAD_BYTES + _CONTENT_SIZE_BYTES])
    return _is_right_short_head(bytes(data[:_HEAD_BYTES]))


def _is_right_head(head: bytes | memoryview) -> bool:
    """Whether its checksum is right."""
    try:
        lz4.frame.get_frame_info(head)
    except RuntimeError:
        return False
    return True


# Producers write one and the same head before every batch.
_is_right_short_head = lru_cache(maxsize=256)(_is_right_head)


class _CheckedBlocks:
    """Reads blocks with checksums as those of one long frame, whose head has neither content size nor checksum."""

    def __init__(self, block_size_code: int, block_bytes: int) -> None:
        head = lz4.frame.compress_begin(
            lz4.frame.create_compression_context(),
            block_size=block_size_code,
            block_linked=False,
            block_checksum=True,
        )
        self._block_bytes = block_bytes
        self._context = lz4.frame.create_decompression_context()
        lz4.frame.decompress_chunk(self._context, head)

    def read(self, block: memoryview) -> bytes:
        """The plain bytes of a block with its size and checksum. Raises Damaged."""
        try:
            plain, read, _ = lz4.frame.decompress_chunk(self._context, block, max_length=self._block_bytes)
        except RuntimeError as error:
            raise Damaged from error
        if read != len(block):
            raise Damaged
        return bytes(plain)
