"""Gzip payloads (RFC 1952), several members in a row allowed: fast while all is well, as Java reads where it is not.

isal is several times faster than zlib, but keeps nothing of a call that fails and checks the trailer in it. So as much
as one step of Java's may lose is held back until what follows is known to be sound, and at a failure the payload is
read again by `gzip_as_java`, which decides.
"""

from collections.abc import Iterator

from isal import isal_zlib

from sluicegate.protocol.records.codecs.codec import Odd, Oddity, Piece
from sluicegate.protocol.records.codecs.decompression_budget import Bounds
from sluicegate.protocol.records.codecs.gzip_as_java import STEP_BYTES, gzip_as_java, has_reserved_flags

_MAGIC = b"\x1f\x8b"
_WBITS = 31
# What is left of the input is copied at every call and at every member's end, so little of it is given at a time.
_INPUT_BYTES = 16 * 1024
_FIRST_INPUT_BYTES = 1024  # of a further member: where there are many they are small
_OUTPUT_BYTES = 256 * 1024
# Deflate blocks without content take up to 50 ns for each of their bytes.
_WORK_OF_INPUT = 8


class _NotSound(Exception):
    pass


def gzip_pieces(data: memoryview, bounds: Bounds) -> Iterator[Piece]:
    """What comes out of all members. Raises Damaged and Odd."""
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


def _members(data: memoryview, bounds: Bounds) -> Iterator[Piece]:
    position = 0
    most = _INPUT_BYTES
    is_odd = False
    while True:
        is_odd = is_odd or has_reserved_flags(data, position)
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
            bounds.allowance.worked(_WORK_OF_INPUT * taken)
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
            if is_odd:
                raise Odd(Oddity.UNVERIFIED)
            return
        if data[position : position + len(_MAGIC)] != _MAGIC:
            raise Odd(Oddity.TRAILING_BYTES)  # Java's GZIPInputStream ignores what is no further member
