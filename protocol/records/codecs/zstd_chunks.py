"""Zstd payloads (RFC 8878), frames in a row, as a broker's ZstdInputStream hands them out.

It reads 16 KiB at a time, ends a step where a frame ends, and hands out nothing of a step that fails. So as much is
held back until what follows is known to be sound, and a frame that fails is read again in such steps.
"""

from collections.abc import Iterator

import zstandard

from sluicegate.protocol.records.codecs.chunks import Bounds, Damaged, Odd, Oddity
from sluicegate.protocol.records.codecs.decompression_budget import Bound, OverLimit
from sluicegate.protocol.records.codecs.plain_buffer import PlainBuffer
from sluicegate.protocol.records.codecs.zstd_frames import frame_at

_STEP_BYTES = 16 * 1024
_INPUT_BYTES = 128 * 1024 + 3
_FRAME_MAGIC, _SKIPPABLE_MAGIC = b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18"
_PIECE_BYTES = 256 * 1024 + _STEP_BYTES


def zstd_pieces(
    data: memoryview, context: zstandard.ZstdDecompressor, buffer: PlainBuffer, bounds: Bounds
) -> Iterator[memoryview]:
    """What comes out of all frames. Raises Damaged, Odd, and OverLimit for a window that is used and too large."""
    position = 0
    while position < len(data):
        frame = frame_at(data, position, bounds.allowance)
        if frame is None:
            if _opens_a_frame(data, position) and _is_taken_for_the_end(position, len(data)):
                raise Odd(Oddity.TRAILING_BYTES)
            raise Damaged
        most = None
        if frame.window_bytes > bounds.window_bytes:
            most = bounds.window_bytes
        if frame.is_skippable:
            yield memoryview(b"")
        else:
            out = 0
            for piece in _frame_pieces(data[position : frame.end], context, buffer):
                out += len(piece)
                if most is not None and out > most:
                    raise OverLimit(Bound.WINDOW, most)
                yield piece
        if frame.end > len(data):
            raise Odd(Oddity.TRAILING_BYTES) if _is_taken_for_the_end(position, len(data)) else Damaged
        position = frame.end


def _opens_a_frame(data: memoryview, position: int) -> bool:
    """Whether what is left goes on like a frame, though it is too short to be one."""
    head = bytes(data[position : position + 4])
    is_skippable = head[0] & 0xF0 == _SKIPPABLE_MAGIC[0] and _SKIPPABLE_MAGIC[1:].startswith(head[1:])
    return is_skippable or _FRAME_MAGIC.startswith(head)


def _is_taken_for_the_end(position: int, size: int) -> bool:
    """zstd-jni notices that a frame is cut only when it had to fetch input since the end of the one before."""
    return position % _INPUT_BYTES > 0 and position // _INPUT_BYTES == (size - 1) // _INPUT_BYTES


def _frame_pieces(frame: memoryview, context: zstandard.ZstdDecompressor, buffer: PlainBuffer) -> Iterator[memoryview]:
    room = buffer.room(_PIECE_BYTES)[:_PIECE_BYTES]
    handed_out = held = 0
    try:
        reader = context.stream_reader(frame, read_across_frames=False, read_size=len(frame))
        while True:
            filled = held + reader.readinto(room[held:])
            if filled < _PIECE_BYTES:
                yield room[:filled]
                return
            yield room[: filled - _STEP_BYTES]
            handed_out += filled - _STEP_BYTES
            room[:_STEP_BYTES] = room[filled - _STEP_BYTES : filled]
            held = _STEP_BYTES
    except zstandard.ZstdError:
        yield from _before_damage(frame, context, handed_out)


def _before_damage(frame: memoryview, context: zstandard.ZstdDecompressor, skip: int) -> Iterator[memoryview]:
    """The whole steps before the one that fails, behind the first `skip` bytes. Raises Damaged."""
    reader = context.stream_reader(frame, read_across_frames=False, read_size=len(frame))
    while True:
        try:
            step = reader.read(_STEP_BYTES)
        except zstandard.ZstdError as error:
            raise Damaged from error
        if not step:
            raise Damaged
        if skip < len(step):
            yield memoryview(step)[skip:]
        skip = max(skip - len(step), 0)
