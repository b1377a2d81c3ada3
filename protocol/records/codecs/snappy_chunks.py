"""Reads snappy as a broker's SnappyInputStream does: one raw block, or xerial's chunks (blocks with their size)."""

from collections.abc import Iterator
from struct import Struct

from sluicegate.protocol.records.codecs.codec import DamagedPayload, Oddity, OddPayload, Piece, PlainBuffer
from sluicegate.protocol.records.codecs.decompression_budget import PayloadLimits

_INT32 = Struct(">i")
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_MAGIC_AS_SIZE: int = _INT32.unpack_from(_XERIAL_MAGIC)[0]
_XERIAL_HEADER_BYTES = 16
_VERSION_AT, _LEAST_VERSION = 8, 1  # the version of a further stream; the first may have any version
_VERSIONS = b"\x00\x00\x00\x01" * 2  # the versions of the format and of the oldest reader, as all clients write them
_STEP_BYTES = 2048
# A copy of 64 bytes takes at least two bytes, so a larger ratio is a false claim.
_MAX_RATIO = 32


def snappy_pieces(data: memoryview, buffer: PlainBuffer, bounds: PayloadLimits) -> Iterator[Piece]:
    """Yield each block. It is not an error if fewer bytes than a chunk's size field remain at the end.

    Raises DamagedPayload, OddPayload and OverLimit.

    A broker reads full steps across chunks, so a chunk's incomplete step is lost if the next chunk is damaged. A step
    also ends at a header that should begin another stream, but does not. The next step continues after that header,
    unless this step was empty.
    """
    if len(data) < _XERIAL_HEADER_BYTES or not _is_xerial(data, 0):
        yield _block(data, buffer, bounds)
        return
    held = b""
    total = 0
    for start, end in _chunks(data, bounds):
        if end == 0:
            if total % _STEP_BYTES == 0:
                break
            if held:
                yield held
            held = b""
            total = 0
            continue
        block = _block(data[start:end], buffer, bounds)
        total += len(block)
        ready = len(block) - (total % _STEP_BYTES if end < len(data) else 0)
        if ready < 0:
            held += block
            yield b""
            continue
        if held:
            yield held
        held = bytes(block[ready:])
        yield block[:ready]
    if held:
        yield held
    if not _is_one_stream(data):
        raise OddPayload(Oddity.TRAILING_BYTES)
    if data[_VERSION_AT:_XERIAL_HEADER_BYTES] != _VERSIONS:
        raise OddPayload(Oddity.UNVERIFIED)


def _chunks(data: memoryview, bounds: PayloadLimits) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each chunk's block. An end of 0 means that the header of a further stream is wrong.

    Raises DamagedPayload.
    """
    position = _XERIAL_HEADER_BYTES
    while len(data) - position >= _INT32.size:
        (size,) = _INT32.unpack_from(data, position)
        if size == _XERIAL_MAGIC_AS_SIZE:  # another stream after the first
            if len(data) - position < _XERIAL_HEADER_BYTES:
                raise DamagedPayload
            if not _is_xerial(data, position):
                yield position, 0
            elif _INT32.unpack_from(data, position + _VERSION_AT)[0] < _LEAST_VERSION:
                raise DamagedPayload
            position += _XERIAL_HEADER_BYTES
            bounds.spend(0)
            continue
        position += _INT32.size
        if size < 0 or size > len(data) - position:
            raise DamagedPayload
        yield position, position + size
        position += size


def _is_one_stream(data: memoryview) -> bool:
    """Return whether chunks fill all bytes after the first header. Another header would be read as a negative size."""
    position = _XERIAL_HEADER_BYTES
    while len(data) - position >= _INT32.size:
        (size,) = _INT32.unpack_from(data, position)
        if size < 0:
            return False
        position += _INT32.size + size
    return position == len(data)


def _block(block: memoryview, buffer: PlainBuffer, bounds: PayloadLimits) -> memoryview:
    import cramjam  # noqa: PLC0415  # 1.5 MB only for snappy; loads in a millisecond or two

    try:
        claim = cramjam.snappy.decompress_raw_len(block)
        if claim > _MAX_RATIO * len(block):
            raise DamagedPayload
        bounds.check_block(claim)
        room = buffer.grow_to(claim)
        return room[: cramjam.snappy.decompress_raw_into(block, room[:claim])]
    except cramjam.DecompressionError as error:
        raise DamagedPayload from error


def _is_xerial(data: memoryview, position: int) -> bool:
    return data[position : position + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC
