"""Reads gzip payloads (RFC 1952) with any number of members: valid members fast, and all others exactly as Java does.

isal is several times faster than zlib. But a call that fails returns nothing, and the trailer is checked in the same
call as the data. The last 16 KiB, which Java could lose, are therefore held back until the data that follow are known
to be valid. After a failure, `gzip_as_java` reads the payload again, and its result is used.

`gzip_as_java` reads as a broker's GZIPInputStream does. Java inflates 8 KiB of input into 16 KiB of output. The output
of the step that fails is lost; earlier output is read. A trailer is checked only after all data before it were
returned. Bytes after a member are ignored if they are not a complete header.
"""

import zlib
from collections.abc import Iterator

from isal import isal_zlib

from sluicegate.protocol.records.codecs.codec import DamagedPayload, Oddity, OddPayload, Piece
from sluicegate.protocol.records.codecs.decompression_budget import PayloadLimits

_MAGIC = b"\x1f\x8b"
_WBITS = 31
# isal copies the remaining input at every call and at every end of a member, so it gets little input at a time.
_INPUT_BYTES = 16 * 1024
_FIRST_INPUT_BYTES = 1024  # for each further member, because many members are small
_OUTPUT_BYTES = 256 * 1024
# Empty deflate blocks take up to 50 ns per byte.
_WORK_OF_INPUT = 8


class _NotSound(Exception):
    pass


def gzip_pieces(data: memoryview, bounds: PayloadLimits) -> Iterator[Piece]:
    """Yield the uncompressed bytes of all members. Raises DamagedPayload and OddPayload."""
    handed_out = 0
    try:
        for piece in _members(data, bounds):
            yield piece
            handed_out += len(piece)
    except (isal_zlib.error, _NotSound):  # type: ignore[misc]  # its stub calls it an object
        pass
    else:
        return
    yield from gzip_as_java(data, bounds, handed_out)


def _members(data: memoryview, bounds: PayloadLimits) -> Iterator[Piece]:
    position = 0
    most = _INPUT_BYTES
    flags = 0
    while True:
        flags |= _flags_of(data, position)
        member = isal_zlib.decompressobj(wbits=_WBITS)
        rest: Piece = b""
        held: Piece = b""
        while not member.eof:
            if not rest:
                rest = data[position : position + most]
                position += len(rest)
                most = _INPUT_BYTES
            plain: Piece = member.decompress(rest, _OUTPUT_BYTES)
            if not plain and not rest and not member.eof:
                raise _NotSound
            taken = len(rest) - len(member.unused_data if member.eof else member.unconsumed_tail)
            bounds.budget.worked(_WORK_OF_INPUT * taken)
            rest = member.unconsumed_tail
            if held and len(plain) < STEP_BYTES:
                plain = bytes(held) + bytes(plain)
            elif held:
                yield held
            held = b""
            if not member.eof and plain:
                plain = memoryview(plain)
                held = plain[max(len(plain) - STEP_BYTES, 0) :]
                plain = plain[: len(plain) - len(held)]
            if member.eof or plain:
                yield plain
        position -= len(member.unused_data)
        most = _FIRST_INPUT_BYTES
        if position == len(data):
            _check_flags(flags)
            return
        if data[position : position + len(_MAGIC)] != _MAGIC:
            raise OddPayload(Oddity.TRAILING_BYTES)  # Java's GZIPInputStream ignores bytes that are not another member


STEP_BYTES = 16 * 1024
_JAVA_INPUT_BYTES = 8 * 1024
_HEADER_BYTES, _TRAILER_BYTES = 10, 8
_LEAST_FOR_ANOTHER_MEMBER = 26
_FLAGS_AT = 3
_HEADER_CRC, _EXTRA, _NAME, _COMMENT = 0x02, 0x04, 0x08, 0x10
_RAW_DEFLATE = -15
_LARGEST_FLAGS = 0x1F  # higher bits are reserved
_U32 = 0xFFFFFFFF
_NAME_STEP_BYTES = 1024
# The factor by which this is slower than other decoders.
_WORK_OF_OUTPUT = 8


def gzip_as_java(data: memoryview, bounds: PayloadLimits, skip: int) -> Iterator[memoryview]:
    """Yield the uncompressed bytes after the first `skip` bytes. Raises DamagedPayload and OddPayload."""
    position = _deflate_at(data, 0)
    if position is None:
        raise DamagedPayload
    fetched = position
    flags = _flags_of(data, 0)
    while True:
        inflater = zlib.decompressobj(_RAW_DEFLATE)
        crc = size = 0
        while not inflater.eof:
            try:
                step = inflater.decompress(data[position:fetched], STEP_BYTES)
            except zlib.error as error:
                raise DamagedPayload from error
            position = fetched - len(inflater.unused_data if inflater.eof else inflater.unconsumed_tail)
            if not step and not inflater.eof:
                if fetched == len(data):
                    raise DamagedPayload
                fetched = min(fetched + _JAVA_INPUT_BYTES, len(data))
            crc = zlib.crc32(step, crc)
            size += len(step)
            bounds.budget.worked(_WORK_OF_OUTPUT * len(step) + _JAVA_INPUT_BYTES)
            if step and skip < len(step):
                yield memoryview(step)[skip:]
            skip = max(skip - len(step), 0)
        yield memoryview(b"")
        trailer = data[position : position + _TRAILER_BYTES]
        if trailer != crc.to_bytes(4, "little") + (size & _U32).to_bytes(4, "little"):
            raise DamagedPayload
        end = position + _TRAILER_BYTES
        following = None
        if fetched < len(data) or len(data) - position > _LEAST_FOR_ANOTHER_MEMBER:
            following = _deflate_at(data, end)
        if following is None:
            if end < len(data):
                raise OddPayload(Oddity.TRAILING_BYTES)
            _check_flags(flags)
            return
        flags |= _flags_of(data, end)
        position = following
        fetched = max(fetched, position)


def _flags_of(data: memoryview, start: int) -> int:
    """Return the flags of the member at `start`, or 0 if the data end before them."""
    return int.from_bytes(data[start + _FLAGS_AT : start + _FLAGS_AT + 1], "big")


def _check_flags(flags: int) -> None:
    """Raise OddPayload for reserved flags, which zlib rejects and Java ignores."""
    if flags > _LARGEST_FLAGS:
        raise OddPayload(Oddity.UNVERIFIED)


def _deflate_at(data: memoryview, start: int) -> int | None:
    """Return where the compressed data of the member at `start` begin, or None if its header is damaged."""
    head = bytes(data[start : start + _HEADER_BYTES])
    if len(head) < _HEADER_BYTES or head[:3] != b"\x1f\x8b\x08":
        return None
    flags, position = head[_FLAGS_AT], start + _HEADER_BYTES
    if flags & _EXTRA:
        position += 2 + int.from_bytes(data[position : position + 2], "little")
    for flag in (_NAME, _COMMENT):
        if flags & flag:
            end = _zero_from(data, position)
            if end is None:
                return None
            position = end + 1
    if flags & _HEADER_CRC:
        if data[position : position + 2] != (zlib.crc32(data[start:position]) & 0xFFFF).to_bytes(2, "little"):
            return None
        position += 2
    return position if position <= len(data) else None


def _zero_from(data: memoryview, position: int) -> int | None:
    while position < len(data):
        found = bytes(data[position : position + _NAME_STEP_BYTES]).find(0)
        if found >= 0:
            return position + found
        position += _NAME_STEP_BYTES
    return None
