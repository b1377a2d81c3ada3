"""Bounded decompression of the five codecs.

A broker streams through a compressed batch, so what lies before a damaged place is judged; therefore a failure keeps
what came out before it. Nothing here ever produces more than `limit` bytes.

Sources: gzip is RFC 1952, several members in a row allowed; snappy comes raw or in xerial's framing; lz4 is the frame
format, one frame, with a wrong header checksum in magic 0 message sets (KAFKA-3160); zstd is RFC 8878, frames in a row.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from struct import Struct

import cramjam
import lz4.frame
import zstandard
from isal import isal_zlib

from protocol.records.codec import Codec
from protocol.records.gzip_damage import gzip_before_damage
from protocol.records.lz4_damage import is_lz4_for_brokers, lz4_before_damage
from protocol.records.zstd_frames import zstd_ends_whole

_INT32 = Struct(">i")
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16
_GZIP_WBITS = 31
# A copy of 64 bytes takes at least two: whoever claims more lies.
_SNAPPY_MAX_RATIO = 32
# zstd-jni, which brokers use, refuses larger windows.
_ZSTD_MAX_WINDOW_BYTES = 1 << 27
_LZ4_HEADER_WITHOUT_CHECKSUM = 6
_STEP_BYTES = 1 << 20


class Failure(Enum):
    """Why a payload did not come out whole."""

    DAMAGED = "the payload is damaged"
    OVER_LIMIT = "the payload is larger than allowed"


@dataclass(frozen=True, slots=True)
class Decompressed:
    """What came out; `failure` is None when it is the whole payload."""

    data: bytes
    failure: Failure | None = None


class _OverLimit(Exception):
    pass


class _Damaged(Exception):
    pass


class _Output:
    """Collects pieces up to a limit (bytes)."""

    def __init__(self, limit: int) -> None:
        self._pieces: list[bytes] = []
        self._left = limit

    def step(self) -> int:
        """How much to ask for next; one byte more than is allowed, so that too much is noticed."""
        return min(_STEP_BYTES, self._left + 1)

    def add(self, piece: bytes) -> None:
        self._left -= len(piece)
        if self._left < 0:
            raise _OverLimit
        self._pieces.append(piece)

    def check_claim(self, size: int) -> None:
        """A block states its size before it is decompressed: refuse before allocating."""
        if size > self._left:
            raise _OverLimit

    def joined(self) -> bytes:
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)


def decompress(codec: Codec, data: memoryview, limit: int, magic: int = 2) -> Decompressed:
    """Decompress `data`, at most `limit` bytes; `magic` is that of the batch or wrapper around it."""
    if codec is Codec.LZ4 and magic == 0:
        data = memoryview(_with_lz4_header_checksum(bytes(data)))
    output = _Output(limit)
    try:
        _DECODERS[codec](data, output)
    except _OverLimit:
        return Decompressed(output.joined(), Failure.OVER_LIMIT)
    except _Damaged:
        if codec is Codec.LZ4:
            plain, whole = lz4_before_damage(data, limit)
            return Decompressed(plain, None if whole else Failure.DAMAGED)
        if codec is Codec.GZIP:
            return Decompressed(gzip_before_damage(data, limit), Failure.DAMAGED)
        return Decompressed(output.joined(), Failure.DAMAGED)
    return Decompressed(output.joined())


def _gzip(data: memoryview, output: _Output) -> None:
    rest: bytes | memoryview = data
    while True:
        member = isal_zlib.decompressobj(wbits=_GZIP_WBITS)
        try:
            while not member.eof:
                piece = member.decompress(rest, output.step())
                rest = member.unconsumed_tail
                if not piece and not member.eof and not rest:
                    raise _Damaged
                output.add(piece)
        except isal_zlib.error as error:  # type: ignore[misc]  # its stub calls it an object
            raise _Damaged from error
        rest = member.unused_data
        if not rest.startswith(b"\x1f\x8b"):  # what is no further member is ignored, as Java's GZIPInputStream does
            return


def _snappy(data: memoryview, output: _Output) -> None:
    """Raw, or xerial's chunks as its SnappyInputStream reads them: less than a chunk's size at the end is no error."""
    if len(data) < _XERIAL_HEADER_BYTES or not _is_xerial(data):
        output.add(_snappy_block(data, output))
        return
    position = _XERIAL_HEADER_BYTES
    while len(data) - position >= _INT32.size:
        if data[position : position + _INT32.size] == _XERIAL_MAGIC[: _INT32.size]:  # another stream behind the first
            if len(data) - position < _XERIAL_HEADER_BYTES:
                raise _Damaged
            if not _is_xerial(data[position:]):
                return
            position += _XERIAL_HEADER_BYTES
            continue
        (size,) = _INT32.unpack_from(data, position)
        position += _INT32.size
        if size < 0 or size > len(data) - position:
            raise _Damaged
        output.add(_snappy_block(data[position : position + size], output))
        position += size


def _is_xerial(data: memoryview) -> bool:
    return data[: len(_XERIAL_MAGIC)] == _XERIAL_MAGIC


def _snappy_block(block: memoryview, output: _Output) -> bytes:
    try:
        claim = cramjam.snappy.decompress_raw_len(block)
        if claim > _SNAPPY_MAX_RATIO * len(block):
            raise _Damaged
        output.check_claim(claim)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise _Damaged from error


def _lz4(data: memoryview, output: _Output) -> None:
    if not is_lz4_for_brokers(data):
        raise _Damaged
    frame = lz4.frame.LZ4FrameDecompressor()
    rest: bytes | memoryview = data
    try:
        while not frame.eof:
            piece = frame.decompress(rest, output.step())
            rest = b""
            if not piece and not frame.eof and frame.needs_input:
                raise _Damaged
            output.add(piece)
    except RuntimeError as error:
        raise _Damaged from error


def _zstd(data: memoryview, output: _Output) -> None:
    reader = zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW_BYTES).stream_reader(
        data, read_across_frames=True, read_size=_STEP_BYTES
    )
    try:
        while piece := reader.read(output.step()):
            output.add(piece)
    except zstandard.ZstdError as error:
        raise _Damaged from error
    if not zstd_ends_whole(data):
        raise _Damaged


def _with_lz4_header_checksum(data: bytes) -> bytes:
    """The frame with its right header checksum: writers of magic 0 computed it over the wrong bytes (KAFKA-3160)."""
    if len(data) <= _LZ4_HEADER_WITHOUT_CHECKSUM:
        return data
    for checksum in range(256):
        fixed = data[:_LZ4_HEADER_WITHOUT_CHECKSUM] + bytes([checksum]) + data[_LZ4_HEADER_WITHOUT_CHECKSUM + 1 :]
        try:
            lz4.frame.get_frame_info(fixed)
        except RuntimeError:
            continue
        return fixed
    return data


_DECODERS: dict[Codec, Callable[[memoryview, _Output], None]] = {
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
