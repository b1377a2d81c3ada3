"""Reads the lz4 frame format as a broker's Lz4BlockInputStream does: block by block, each once it is complete.

A broker verifies neither the content size nor the content checksum, treats an empty raw block as the end mark, ignores
all later bytes, and rejects linked blocks. Consumers that use other libraries verify both, so a mismatch raises
OddPayload.
"""

from collections.abc import Iterator

import lz4.frame

from sluicegate.protocol.records.codecs.codec import DamagedPayload, Oddity, OddPayload, Piece, PlainBuffer

_MAGIC = 0x184D_2204
# A broker accepts no linked blocks, dictionaries or reserved bits.
_KNOWN_FLAGS = 0b1110_0011
_VERSION_1_INDEPENDENT_BLOCKS = 0b0110_0000
# 64 KiB. The largest is 7, 4 MiB.
_SMALLEST_BLOCK_CODE = 4
_PRIME_1, _PRIME_2, _PRIME_3 = 0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D
_PRIME_4, _PRIME_5 = 0x27D4_EB2F, 0x1656_67B1
_U32 = 0xFFFF_FFFF
_FLAGS_AT, _DESCRIPTOR_AT = 4, 5
_HEAD_BYTES = 7  # magic, flags, descriptor and their checksum; a content size precedes the checksum
_BLOCK_CHECKSUM, _CONTENT_SIZE, _CONTENT_CHECKSUM = 0x10, 0x08, 0x04
_CONTENT_SIZE_BYTES, _SIZE_AT = 8, 6
_CHECKSUM_BYTES = 4
_SIZE_BYTES = 4
# The highest bit marks an uncompressed block.
_SIZE_MASK = 0x7FFF_FFFF


class Lz4Blocks:
    """The blocks of one frame in a batch of `magic`. Each is valid until the next.

    Raises DamagedPayload and OddPayload.
    """

    def __init__(self, data: memoryview, buffer: PlainBuffer, magic: int) -> None:
        self._data = data
        self._bytes = data
        self._end = len(data)
        self._position = self._end  # frames that brokers reject are not read
        self._buffer = buffer
        self._room: memoryview | None = None
        self._checked: _CheckedBlocks | None = None
        self._flags = 0
        self._block_bytes = 0
        self._content_bytes = 0
        self._filled = 0
        if self._end > _HEAD_BYTES and self._uint32(0) == _MAGIC:
            self._begin(magic)

    def __iter__(self) -> Iterator[Piece]:
        return self

    def __next__(self) -> Piece:
        stated = self._position
        start = stated + _SIZE_BYTES
        if start > self._end:
            raise DamagedPayload
        size = self._uint32(stated)
        stored = size & _SIZE_MASK
        if stored == 0:
            end = start + (_CHECKSUM_BYTES if self._flags & _CONTENT_CHECKSUM else 0)
            if end > self._end:
                raise DamagedPayload
            if size != stored:
                raise OddPayload(Oddity.HIDDEN_DATA)
            if end < self._end:
                raise OddPayload(Oddity.TRAILING_BYTES)
            if self._content_bytes and self._content_bytes != self._filled:  # 0 means unknown
                raise OddPayload(Oddity.UNVERIFIED)
            if self._checked is not None and not self._checked.ends_with(self._data[stated:end]):
                raise OddPayload(Oddity.UNVERIFIED)
            raise StopIteration
        end = start + stored + (_CHECKSUM_BYTES if self._flags & _BLOCK_CHECKSUM else 0)
        self._position = self._end  # nothing is read after a damaged block
        if end > self._end:
            raise DamagedPayload
        if self._checked is not None:
            piece: Piece = self._checked.read(self._data[stated:end])
        elif size == stored:
            piece = self._decompressed(self._data[start:end])
        elif stored > self._block_bytes:
            raise DamagedPayload
        else:
            piece = self._data[start:end]
        self._position = end
        self._filled += len(piece)
        return piece

    def _begin(self, magic: int) -> None:
        """Read the frame header. Blocks are read only if brokers accept the header."""
        data = self._bytes
        flags, descriptor = data[_FLAGS_AT], data[_DESCRIPTOR_AT]
        code = descriptor >> 4
        if flags & _KNOWN_FLAGS != _VERSION_1_INDEPENDENT_BLOCKS or descriptor & 0x8F or code < _SMALLEST_BLOCK_CODE:
            return
        end = _HEAD_BYTES + (_CONTENT_SIZE_BYTES if flags & _CONTENT_SIZE else 0)
        # Magic 0 writers computed the header checksum over the wrong bytes, so it is not verified (KAFKA-3160).
        if magic != 0 and (end > self._end or data[end - 1] != _xxh32(data, _FLAGS_AT, end - 1) >> 8 & 0xFF):
            return
        self._flags = flags
        if flags & _CONTENT_SIZE and end <= self._end:
            # assigned to a wide variable first, because a C int would overflow
            self._content_bytes = self._uint32(_SIZE_AT + 4)
            self._content_bytes = self._content_bytes << 32 | self._uint32(_SIZE_AT)
        self._block_bytes = 1 << (8 + 2 * code)
        if flags & (_BLOCK_CHECKSUM | _CONTENT_CHECKSUM):
            self._checked = _CheckedBlocks(code, self._block_bytes, flags)
        self._position = end

    def _uint32(self, at: int) -> int:
        data = self._bytes
        return data[at] | data[at + 1] << 8 | data[at + 2] << 16 | data[at + 3] << 24

    def _decompressed(self, block: memoryview) -> memoryview:
        import cramjam  # noqa: PLC0415  # 1.5 MB only for such blocks, or snappy; loads in a millisecond or two

        if self._room is None:
            self._room = self._buffer.grow_to(self._block_bytes)[: self._block_bytes]
        try:
            size = cramjam.lz4.decompress_block_into(block, self._room, output_len=self._block_bytes)
        except cramjam.DecompressionError as error:
            raise DamagedPayload from error
        return self._room if size == self._block_bytes else self._room[:size]


def _xxh32(data: memoryview, start: int, end: int) -> int:
    """Return XXH32 of fewer than 16 bytes with seed 0 (steps 4 to 6 in xxHash's specification)."""
    value = (_PRIME_5 + end - start) & _U32
    at = start
    while at + 4 <= end:
        four = data[at] | data[at + 1] << 8 | data[at + 2] << 16 | data[at + 3] << 24
        value = (value + four * _PRIME_3) & _U32
        value = ((value << 17 | value >> 15) & _U32) * _PRIME_4 & _U32
        at += 4
    while at < end:
        value = (value + data[at] * _PRIME_5) & _U32
        value = ((value << 11 | value >> 21) & _U32) * _PRIME_1 & _U32
        at += 1
    value = (value ^ value >> 15) * _PRIME_2 & _U32
    value = (value ^ value >> 13) * _PRIME_3 & _U32
    return value ^ value >> 16


class _CheckedBlocks:
    """A reader of frames with checksums that uses the lz4 library, with a header that has no content size."""

    def __init__(self, block_size_code: int, block_bytes: int, flags: int) -> None:
        head = lz4.frame.compress_begin(
            lz4.frame.create_compression_context(),
            block_size=block_size_code,
            block_linked=False,
            block_checksum=bool(flags & _BLOCK_CHECKSUM),
            content_checksum=bool(flags & _CONTENT_CHECKSUM),
        )
        self._block_bytes = block_bytes
        self._context = lz4.frame.create_decompression_context()
        lz4.frame.decompress_chunk(self._context, head)

    def read(self, block: memoryview) -> bytes:
        """Return the uncompressed bytes of a block, given with its size and checksum. Raises DamagedPayload."""
        try:
            plain, read, _ = lz4.frame.decompress_chunk(self._context, block, max_length=self._block_bytes)
        except RuntimeError as error:
            raise DamagedPayload from error
        if read != len(block):
            raise DamagedPayload
        return bytes(plain)

    def ends_with(self, end: memoryview) -> bool:
        """Return whether the content checksum after the end mark matches the blocks.

        Return True if there is no checksum.
        """
        try:
            lz4.frame.decompress_chunk(self._context, end)
        except RuntimeError:
            return False
        return True
