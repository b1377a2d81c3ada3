"""Bounded decompression of the five codecs, as a stream of pieces.

A broker streams through a compressed batch, so what lies before a damaged place is validated; therefore a damaged
payload
still hands out what a broker's decoder would. What is held at once is one piece: a few hundred KiB, or a block where a
codec only knows whole blocks.

Sources: gzip is RFC 1952, several members in a row allowed; snappy comes raw or in xerial's framing; lz4 is the frame
format, one frame, with a wrong header checksum in magic 0 message sets (KAFKA-3160); zstd is RFC 8878, frames in a row.
"""

from collections.abc import Iterator

import zstandard

from sluicegate.protocol.records.codecs.codec import Codec, Damaged, Failure, Odd, Oddity, Piece, PlainBuffer
from sluicegate.protocol.records.codecs.decompression_budget import Allowance, Bounds, OverLimit
from sluicegate.protocol.records.codecs.gzip_members import gzip_pieces
from sluicegate.protocol.records.codecs.lz4_blocks import Lz4Blocks
from sluicegate.protocol.records.codecs.snappy_chunks import snappy_pieces
from sluicegate.protocol.records.codecs.zstd_frames import zstd_pieces

# Named here, because looking an enum's member up takes longer than the comparison.
_GZIP, _SNAPPY, _LZ4, _ZSTD = Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD
# zstd-jni, which brokers use, rejects larger windows.
_ZSTD_MAX_WINDOW_BYTES = 1 << 27
_ZSTD_KEPT_BYTES = 8 << 20
_MOST_PIECE_BYTES = 1 << 20
_UNBOUNDED = 1 << 62


class Pieces:
    """What a codec's decoder yields, counted and cut to at most `most` bytes.

    `failure` is set once `more` has said None: None there too means that the payload came out whole. So is `oddity`:
    what a broker ignores in a payload that came out whole.
    """

    def __init__(self, decoder: Iterator[Piece], bounds: Bounds, most: int) -> None:
        self.failure: Failure | None = None
        self.oddity: Oddity | None = None
        self._decoder = decoder
        self._bounds = bounds
        self._most = most
        self._rest: Piece | None = None

    def more(self) -> Piece | None:
        """The next piece, never empty, valid until the one after it; None behind the last.

        Raises OverLimit, and Abandoned.
        """
        piece = self._rest if self._rest is not None else self._decoded()
        self._rest = None
        if piece is not None and len(piece) > self._most:
            view = memoryview(piece)
            self._rest = view[self._most :]
            return view[: self._most]
        return piece

    def _decoded(self) -> Piece | None:
        self._bounds.allowance.check_open()
        try:
            for piece in self._decoder:
                self._bounds.spend(len(piece))
                if len(piece):
                    return piece
        except Damaged:
            self.failure = Failure.DAMAGED
        except Odd as odd:
            self.oddity = odd.oddity
        return None


class Decompressed:
    """What came out; `failure` is None when it is the whole payload, `oddity` what a broker ignores in it.

    `data` is valid until the Decompressor that made it is used again.
    """

    def __init__(self, data: memoryview, failure: Failure | None = None, oddity: Oddity | None = None) -> None:
        self.data = data
        self.failure = failure
        self.oddity = oddity


class Decompressor:
    """Keeps buffers and codec contexts from batch to batch; every thread that validates needs one of its own."""

    def __init__(self, most_piece_bytes: int = _MOST_PIECE_BYTES) -> None:
        self._most_piece_bytes = most_piece_bytes
        self._piece = PlainBuffer()
        self._whole = PlainBuffer()
        self._zstd_context = _zstd_context()

    def open(self, codec: Codec, data: memoryview, bounds: Bounds, magic: int = 2) -> Pieces:
        """The plain bytes of `data` within `bounds`; `magic` is that of the batch or wrapper around it.

        One payload at a time: the one before is no longer readable. `close` when it has been read.
        """
        return Pieces(self._decoder(codec, data, bounds, magic), bounds, self._most_piece_bytes)

    def close(self) -> None:
        """Give back what a large payload took."""
        self._piece.give_back()
        if self._zstd_context.memory_size() > _ZSTD_KEPT_BYTES:
            self._zstd_context = _zstd_context()

    def decompress(self, codec: Codec, data: memoryview, limit: int, magic: int = 2) -> Decompressed:
        """The payload whole, at most `limit` bytes of it."""
        pieces = self.open(codec, data, Bounds(limit, limit, Allowance(_UNBOUNDED, 0, _go_on)), magic)
        self._whole.give_back()
        filled = 0
        failure: Failure | None = Failure.OVER_LIMIT
        try:
            while (piece := pieces.more()) is not None:
                room = self._whole.room(filled + len(piece), filled)
                room[filled : filled + len(piece)] = piece
                filled += len(piece)
            failure = pieces.failure
        except OverLimit:
            pass
        finally:
            self.close()
        return Decompressed(self._whole.room(filled)[:filled], failure, pieces.oddity)

    def _decoder(self, codec: Codec, data: memoryview, bounds: Bounds, magic: int) -> Iterator[Piece]:
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
    """Nobody waits while a payload is read whole."""
