"""Compresses a payload as clients do, at once or in pieces, so that every consumer can read it.

Snappy uses xerial's framing with 32 KiB blocks, as Java writes it. Lz4 writes one frame of independent blocks, because
Java cannot read linked blocks. A zstd frame states its size only if the payload is compressed at once.
"""

import zlib
from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, Final, Protocol

import lz4.frame
import zstandard

from sluicegate.protocol.records.codecs.codec import Codec

PIECE_BYTES: Final = 64 * 1024
"""The size of all pieces before the last. It is a multiple of all block sizes."""

_SIZE = Struct(">i")
_XERIAL = b"\x82SNAPPY\x00" + _SIZE.pack(1) + _SIZE.pack(1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_GZIP = 16 + zlib.MAX_WBITS

Plain = bytes | bytearray | memoryview


class Compressor(Protocol):
    """A compressor of one payload. `work` is the approximate time per uncompressed byte (ns)."""

    work: int

    def add(self, piece: Plain) -> bytes:
        """Add a piece of PIECE_BYTES. Return the bytes that were compressed since the last call."""

    def end(self, last: Plain) -> bytes:
        """Add a last piece of any size. Return the remaining compressed bytes."""


class _Plain:
    work = 1

    def add(self, piece: Plain) -> bytes:
        return bytes(piece)

    def end(self, last: Plain) -> bytes:
        return bytes(last)


class _Gzip:
    work = 32

    def __init__(self) -> None:
        self._stream = zlib.compressobj(wbits=_GZIP)

    def add(self, piece: Plain) -> bytes:
        return self._stream.compress(piece)

    def end(self, last: Plain) -> bytes:
        return self._stream.compress(last) + self._stream.flush()


class _Xerial:
    work = 4

    def __init__(self) -> None:
        import cramjam  # noqa: PLC0415  # only for snappy

        self._compress = cramjam.snappy.compress_raw
        self._head = _XERIAL

    def add(self, piece: Plain) -> bytes:
        parts, self._head = [self._head], b""
        for start in range(0, len(piece), _XERIAL_BLOCK_BYTES):
            block = bytes(self._compress(bytes(piece[start : start + _XERIAL_BLOCK_BYTES])))
            parts += (_SIZE.pack(len(block)), block)
        return b"".join(parts)

    end = add


class _Lz4:
    work = 4

    def __init__(self) -> None:
        self._frame: Any = None

    def add(self, piece: Plain) -> bytes:
        head = b""
        if self._frame is None:
            self._frame = lz4.frame.LZ4FrameCompressor(block_linked=False)
            head = self._frame.begin()
        return head + bytes(self._frame.compress(piece))

    def end(self, last: Plain) -> bytes:
        if self._frame is None:
            return bytes(lz4.frame.compress(last, block_linked=False, store_size=False))
        return bytes(self._frame.compress(last) + self._frame.flush())


class _Zstd:
    work = 8

    def __init__(self) -> None:
        self._frame: Any = None

    def add(self, piece: Plain) -> bytes:
        if self._frame is None:
            self._frame = zstandard.ZstdCompressor().compressobj()
        return bytes(self._frame.compress(piece))

    def end(self, last: Plain) -> bytes:
        if self._frame is None:
            return zstandard.ZstdCompressor().compress(last)
        return bytes(self._frame.compress(last) + self._frame.flush())


_COMPRESSORS: Mapping[Codec, Callable[[], Compressor]] = {
    Codec.NONE: _Plain,
    Codec.GZIP: _Gzip,
    Codec.SNAPPY: _Xerial,
    Codec.LZ4: _Lz4,
    Codec.ZSTD: _Zstd,
}


def compressor_of(codec: Codec) -> Compressor:
    """Return a compressor for one payload. For Codec.NONE, it changes nothing."""
    return _COMPRESSORS[codec]()


def compress(codec: Codec, data: Plain) -> bytes:
    """Return a whole payload in a codec's format. For Codec.NONE, it is unchanged."""
    return compressor_of(codec).end(data)
