"""Decompresses the five codecs within bounds, as a stream of pieces.

A broker streams through a compressed batch and validates the records before a damaged position. A damaged payload
therefore yields the same uncompressed bytes as a broker's decoder. Only one piece is in memory at a time: a few hundred
KiB, or one block if the codec decompresses only whole blocks.

Formats: gzip is RFC 1952, with several members; snappy is raw or in xerial's framing; lz4 is one frame of the frame
format, with a wrong header checksum in magic 0 message sets (KAFKA-3160); zstd is RFC 8878, with several frames.
"""

from collections.abc import Iterator

import zstandard

from sluicegate.protocol.records.codecs.codec import (
    Codec,
    DamagedPayload,
    Failure,
    Oddity,
    OddPayload,
    Piece,
    PlainBuffer,
)
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, OverLimit, PayloadLimits
from sluicegate.protocol.records.codecs.gzip_members import gzip_pieces
from sluicegate.protocol.records.codecs.lz4_blocks import Lz4Blocks
from sluicegate.protocol.records.codecs.snappy_chunks import snappy_pieces
from sluicegate.protocol.records.codecs.zstd_frames import zstd_pieces

# Module constants, because looking up an enum member takes longer than comparing it.
_GZIP, _SNAPPY, _LZ4, _ZSTD = Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD
# zstd-jni, which brokers use, rejects larger windows.
_ZSTD_MAX_WINDOW_BYTES = 1 << 27
_ZSTD_KEPT_BYTES = 8 << 20
_MOST_PIECE_BYTES = 1 << 20
_UNBOUNDED = 1 << 62


class DecompressedStream:
    """A decoder's output, in pieces of at most `most` bytes. Counts the bytes.

    `failure` and `oddity` are set after `more` has returned None. `failure` is None if the payload is complete.
    `oddity` is a part of a complete payload that a broker ignores, or None.
    """

    def __init__(self, decoder: Iterator[Piece], bounds: PayloadLimits, most: int) -> None:
        self.failure: Failure | None = None
        self.oddity: Oddity | None = None
        self._decoder = decoder
        self._bounds = bounds
        self._most = most
        self._rest: Piece | None = None

    def more(self) -> Piece | None:
        """Return the next piece, or None after the last piece.

        A piece is never empty, and is valid until the next call. Raises OverLimit and Abandoned.
        """
        piece = self._rest if self._rest is not None else self._decoded()
        self._rest = None
        if piece is not None and len(piece) > self._most:
            view = memoryview(piece)
            self._rest = view[self._most :]
            return view[: self._most]
        return piece

    def _decoded(self) -> Piece | None:
        self._bounds.budget.check_open()
        try:
            for piece in self._decoder:
                self._bounds.spend(len(piece))
                if len(piece):
                    return piece
        except DamagedPayload:
            self.failure = Failure.DAMAGED
        except OddPayload as odd:
            self.oddity = odd.oddity
        return None


class Decompressed:
    """A decompressed payload. `failure` is None if it is complete. `oddity` is a part of it that a broker ignores.

    `data` is valid until its Decompressor is used again.
    """

    def __init__(self, data: memoryview, failure: Failure | None = None, oddity: Oddity | None = None) -> None:
        self.data = data
        self.failure = failure
        self.oddity = oddity


class Decompressor:
    """A holder of buffers and codec contexts, which it reuses from batch to batch.

    Each validating thread needs its own.
    """

    def __init__(self, most_piece_bytes: int = _MOST_PIECE_BYTES) -> None:
        self._most_piece_bytes = most_piece_bytes
        self._piece = PlainBuffer()
        self._whole = PlainBuffer()
        self._zstd_context = _zstd_context()

    def open(self, codec: Codec, data: memoryview, bounds: PayloadLimits, magic: int = 2) -> DecompressedStream:
        """Return the uncompressed bytes of `data` within `bounds`. `magic` is that of the batch or of the wrapper.

        Only one payload can be open: this call invalidates the previous one. Call `close` after reading.
        """
        return DecompressedStream(self._decoder(codec, data, bounds, magic), bounds, self._most_piece_bytes)

    def close(self) -> None:
        """Free the memory of a large payload."""
        self._piece.shrink()
        if self._zstd_context.memory_size() > _ZSTD_KEPT_BYTES:
            self._zstd_context = _zstd_context()

    def decompress(self, codec: Codec, data: memoryview, limit: int, magic: int = 2) -> Decompressed:
        """Return the whole payload, at most `limit` bytes."""
        pieces = self.open(codec, data, PayloadLimits(limit, limit, DecompressionBudget(_UNBOUNDED, 0, _go_on)), magic)
        self._whole.shrink()
        filled = 0
        failure: Failure | None = Failure.OVER_LIMIT
        try:
            while (piece := pieces.more()) is not None:
                room = self._whole.grow_to(filled + len(piece), filled)
                room[filled : filled + len(piece)] = piece
                filled += len(piece)
            failure = pieces.failure
        except OverLimit:
            pass
        finally:
            self.close()
        return Decompressed(self._whole.grow_to(filled)[:filled], failure, pieces.oddity)

    def _decoder(self, codec: Codec, data: memoryview, bounds: PayloadLimits, magic: int) -> Iterator[Piece]:
        if codec is _GZIP:
            return gzip_pieces(data, bounds)
        if codec is _SNAPPY:
            return snappy_pieces(data, self._piece, bounds)
        if codec is _LZ4:
            return Lz4Blocks(data, self._piece, magic)
        if codec is _ZSTD:
            return zstd_pieces(data, self._zstd_context, self._piece, bounds)
        return iter((data,))


def _zstd_context() -> zstandard.ZstdDecompressor:
    return zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW_BYTES)


def _go_on() -> None:
    """Do nothing, because no other work waits while a whole payload is read."""
