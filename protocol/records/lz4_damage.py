"""What a broker's Lz4BlockInputStream reads, where it differs from the lz4 frame format.

`lz4_before_damage` is only called for payloads that a strict reader refused. A broker reads block by block and hands
out whole blocks; it looks neither at the content size nor at the content checksum (but wants its bytes to be there).
"""

from struct import Struct

import lz4.frame

_MAGIC = b"\x04\x22\x4d\x18"
# Linked blocks, dictionaries and reserved bits are none of a broker's.
_KNOWN_FLAGS = 0b0010_0011
_INDEPENDENT_BLOCKS = 0b0010_0000
_BLOCK_SIZE = Struct("<I")
_FLAGS_AT, _DESCRIPTOR_AT = 4, 5
_BLOCK_CHECKSUM, _CONTENT_SIZE, _CONTENT_CHECKSUM = 0x10, 0x08, 0x04
_CONTENT_SIZE_BYTES = 8
_CHECKSUM_BYTES = 4
_UNCOMPRESSED = 0x8000_0000
_END_MARK = bytes(4)


def is_lz4_for_brokers(data: memoryview) -> bool:
    """Whether a payload opens as a frame that brokers read."""
    if len(data) <= _DESCRIPTOR_AT or data[: len(_MAGIC)] != _MAGIC:
        return False
    return data[_FLAGS_AT] & _KNOWN_FLAGS == _INDEPENDENT_BLOCKS


def lz4_before_damage(data: memoryview, limit: int) -> tuple[bytes, bool]:
    """The bytes (at most `limit`) of the blocks before the damage, and whether the frame ends as a broker wants it."""
    if not is_lz4_for_brokers(data):
        return b"", False
    try:
        lz4.frame.get_frame_info(data)
    except RuntimeError:
        return b"", False
    flags = data[_FLAGS_AT]
    position = _DESCRIPTOR_AT + 1 + (_CONTENT_SIZE_BYTES if flags & _CONTENT_SIZE else 0) + 1
    behind_block = _CHECKSUM_BYTES if flags & _BLOCK_CHECKSUM else 0
    head = _head_of_one_block(data)
    out = bytearray()
    while len(out) < limit and position + _BLOCK_SIZE.size <= len(data):
        (size,) = _BLOCK_SIZE.unpack_from(data, position)
        size &= ~_UNCOMPRESSED
        start, position = position, position + _BLOCK_SIZE.size + size + behind_block
        if size == 0:
            needed = _CHECKSUM_BYTES if flags & _CONTENT_CHECKSUM else 0
            return bytes(out), start + _BLOCK_SIZE.size + needed <= len(data)
        if position > len(data):
            break
        try:
            out += lz4.frame.decompress(head + bytes(data[start:position]) + _END_MARK)
        except RuntimeError:
            break
    return bytes(out[:limit]), False


def _head_of_one_block(data: memoryview) -> bytes:
    """The head of a frame like this one, but without content size and checksum, to read one block by itself."""
    compressor = lz4.frame.LZ4FrameCompressor(
        block_size=data[_DESCRIPTOR_AT] >> 4 & 7,
        block_linked=False,
        block_checksum=bool(data[_FLAGS_AT] & _BLOCK_CHECKSUM),
    )
    return bytes(compressor.begin())
