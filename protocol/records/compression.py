"""Bounded decompression of the five codecs.

A broker streams through a compressed batch, so what lies before a damaged place is judged; therefore a failure keeps
what came out before it. Nothing here ever produces more than `limit` bytes and a block.

Sources: gzip is RFC 1952, several members in a row allowed; snappy comes raw or in xerial's framing; lz4 is the frame
format, one frame, with a wrong header checksum in magic 0 message sets (KAFKA-3160); zstd is RFC 8878, frames in a row.
"""

from collections.abc import Callable
from enum import Enum
from struct import Struct

import cramjam
import lz4.frame
import zstandard
from isal import isal_zlib

from protocol.records.codec import Codec
from protocol.records.gzip_damage import gzip_before_damage
from protocol.records.lz4_blocks import DamagedFrame, read_lz4_frame
from protocol.records.plain_buffer import OverLimit, PlainBuffer
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
# Room for a payload whose size nobody states, as a multiple of its compressed size; more is made when it is needed.
_GUESSED_RATIO = 2


class Failure(Enum):
    """Why a payload did not come out whole."""

    DAMAGED = "the payload is damaged"
    OVER_LIMIT = "the payload is larger than allowed"


class Decompressed:
    """What came out; `failure` is None when it is the whole payload.

    `data` is valid until the Decompressor that made it is used again.
    """

    def __init__(self, data: memoryview, failure: Failure | None = None) -> None:
        self.data = data
        self.failure = failure


class _Damaged(Exception):
    pass


class _CutMember(Exception):
    pass


class Decompressor:
    """Keeps buffers and codec contexts from batch to batch; every thread that judges needs one of its own."""

    def __init__(self) -> None:
        self._plain = PlainBuffer()
        self._zstd_context = zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW_BYTES)
        self._decoders: dict[Codec, Callable[[memoryview, int], None]] = {
            Codec.GZIP: self._gzip,
            Codec.SNAPPY: self._snappy,
            Codec.LZ4: self._lz4,
            Codec.ZSTD: self._zstd,
        }

    def decompress(self, codec: Codec, data: memoryview, limit: int, magic: int = 2) -> Decompressed:
        """Decompress `data`, at most `limit` bytes; `magic` is that of the batch or wrapper around it."""
        if codec is Codec.LZ4 and magic == 0:
            data = memoryview(_with_lz4_header_checksum(bytes(data)))
        plain = self._plain
        plain.begin(limit)
        failure = None
        try:
            self._decoders[codec](data, limit)
        except OverLimit:
            failure = Failure.OVER_LIMIT
        except _Damaged:
            failure = Failure.DAMAGED
        return Decompressed(plain.contents(), failure)

    def _gzip(self, data: memoryview, limit: int) -> None:
        try:
            self._gzip_members(data, limit)
        except (isal_zlib.error, _CutMember) as error:  # type: ignore[misc]  # its stub calls it an object
            self._plain.begin(limit)
            self._plain.add(gzip_before_damage(data, limit))
            raise _Damaged from error

    def _gzip_members(self, data: memoryview, limit: int) -> None:
        rest: bytes | memoryview = data
        while True:
            member = isal_zlib.decompressobj(wbits=_GZIP_WBITS)
            while not member.eof:
                piece = member.decompress(rest, self._plain.step(limit + 1))
                rest = member.unconsumed_tail
                if not piece and not member.eof and not rest:
                    raise _CutMember
                self._plain.add(piece)
            rest = member.unused_data
            if not rest.startswith(b"\x1f\x8b"):  # what is no further member is ignored, as Java's GZIPInputStream does
                return

    def _snappy(self, data: memoryview, _limit: int) -> None:
        """Raw, or xerial's chunks as SnappyInputStream reads them; less than a chunk's size at the end is no error."""
        if len(data) < _XERIAL_HEADER_BYTES or not _is_xerial(data):
            self._snappy_block(data)
            return
        position = _XERIAL_HEADER_BYTES
        while len(data) - position >= _INT32.size:
            (size,) = _INT32.unpack_from(data, position)
            if size == _XERIAL_MAGIC_AS_SIZE:  # another stream behind the first
                if len(data) - position < _XERIAL_HEADER_BYTES:
                    raise _Damaged
                if not _is_xerial(data[position:]):
                    return
                position += _XERIAL_HEADER_BYTES
                continue
            position += _INT32.size
            if size < 0 or size > len(data) - position:
                raise _Damaged
            self._snappy_block(data[position : position + size])
            position += size

    def _snappy_block(self, block: memoryview) -> None:
        try:
            claim = cramjam.snappy.decompress_raw_len(block)
            if claim > _SNAPPY_MAX_RATIO * len(block):
                raise _Damaged
            self._plain.check_claim(claim)
            self._plain.wrote(cramjam.snappy.decompress_raw_into(block, self._plain.room(claim)[:claim]))
        except cramjam.DecompressionError as error:
            raise _Damaged from error

    def _lz4(self, data: memoryview, _limit: int) -> None:
        try:
            read_lz4_frame(data, self._plain)
        except DamagedFrame as error:
            raise _Damaged from error

    def _zstd(self, data: memoryview, limit: int) -> None:
        try:
            self._zstd_frames(data, min(limit + 1, _GUESSED_RATIO * len(data)))
        except zstandard.ZstdError as error:
            self._plain.begin(limit)
            self._zstd_before_damage(data)
            raise _Damaged from error
        if not zstd_ends_whole(data):
            raise _Damaged

    def _zstd_frames(self, data: memoryview, guess: int) -> None:
        plain = self._plain
        reader = self._zstd_context.stream_reader(data, read_across_frames=True, read_size=len(data))
        room = plain.room(max(guess, 1))
        while True:
            size = reader.readinto(room)
            plain.wrote(size)
            if size < len(room):
                return
            room = plain.room(plain.step(_STEP_BYTES))

    def _zstd_before_damage(self, data: memoryview) -> None:
        """What a reader gets that asks for a step at a time."""
        reader = self._zstd_context.stream_reader(data, read_across_frames=True, read_size=_STEP_BYTES)
        try:
            while piece := reader.read(self._plain.step(_STEP_BYTES)):
                self._plain.add(piece)
        except zstandard.ZstdError:
            return


_XERIAL_MAGIC_AS_SIZE: int = _INT32.unpack_from(_XERIAL_MAGIC)[0]


def _is_xerial(data: memoryview) -> bool:
    return data[: len(_XERIAL_MAGIC)] == _XERIAL_MAGIC


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
