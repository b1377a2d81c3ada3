"""Reads zstd payloads (RFC 8878) with any number of frames, as a broker's ZstdInputStream does.

The broker's stream reads 16 KiB at a time, ends a step where a frame ends, and returns nothing from a step that fails.
The last 16 KiB are therefore held back until the data that follow are known to be valid, and a frame that fails is read
again in such steps.

The end of a frame, and the window that it needs (section 3.1), are found without decompressing a block:
python-zstandard's reader accepts a truncated frame, but a broker responds to it with an error.
"""

from collections.abc import Iterator

import zstandard

from sluicegate.protocol.records.codecs.codec import DamagedPayload, Oddity, OddPayload, PlainBuffer
from sluicegate.protocol.records.codecs.decompression_budget import (
    DecompressionBudget,
    OverLimit,
    PayloadLimit,
    PayloadLimits,
)

_STEP_BYTES = 16 * 1024
_INPUT_BYTES = 128 * 1024 + 3
# zstd-jni keeps the number of missing bytes, which libzstd returns, in an int. The largest numbers look like libzstd's
# errors.
_LEAST_HINT_TAKEN_FOR_AN_ERROR = (1 << 32) - 119
_FRAME_START, _SKIPPABLE_START = b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18"
_PIECE_BYTES = 256 * 1024 + _STEP_BYTES
# Little-endian, like the constants below.
_FRAME_MAGIC = 0x28 | 0xB5 << 8 | 0x2F << 16
_FRAME_MAGIC_TOP = 0xFD
_SKIPPABLE_MAGIC_WITHOUT_FIRST = 0x2A | 0x4D << 8 | 0x18 << 16
_LEAST_FRAME_BYTES = 8
_CHECKSUM_BYTES = 4
_RLE_BLOCK = 1
_BLOCKS_BEFORE_GIVING_WAY = 1 << 16


def zstd_pieces(
    data: memoryview, context: zstandard.ZstdDecompressor, buffer: PlainBuffer, bounds: PayloadLimits
) -> Iterator[memoryview]:
    """Yield the uncompressed bytes of all frames.

    Raises DamagedPayload and OddPayload. Raises OverLimit if a frame needs too large a window.
    """
    position = 0
    while position < len(data):
        frame = frame_at(data, position, bounds.budget)
        if frame is None:
            if _opens_a_frame(data, position) and _is_taken_for_the_end(position, len(data)):
                raise OddPayload(Oddity.TRAILING_BYTES)
            raise DamagedPayload
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
                    raise OverLimit(PayloadLimit.WINDOW, most)
                yield piece
        missing = frame.end - len(data)
        if missing > 0:
            is_range_complete = missing < _LEAST_HINT_TAKEN_FOR_AN_ERROR and _is_taken_for_the_end(position, len(data))
            raise OddPayload(Oddity.TRAILING_BYTES) if is_range_complete else DamagedPayload
        position = frame.end


def _opens_a_frame(data: memoryview, position: int) -> bool:
    """Return whether the remaining bytes begin like a frame, but are too few to be one."""
    head = bytes(data[position : position + 4])
    is_skippable = head[0] & 0xF0 == _SKIPPABLE_START[0] and _SKIPPABLE_START[1:].startswith(head[1:])
    return is_skippable or _FRAME_START.startswith(head)


def _is_taken_for_the_end(position: int, size: int) -> bool:
    """Return whether zstd-jni treats a truncated frame at `position` as the end of the payload.

    zstd-jni notices a truncated frame only if it has fetched input since the end of the previous frame.
    """
    return position % _INPUT_BYTES > 0 and position // _INPUT_BYTES == (size - 1) // _INPUT_BYTES


def _frame_pieces(frame: memoryview, context: zstandard.ZstdDecompressor, buffer: PlainBuffer) -> Iterator[memoryview]:
    room = buffer.grow_to(_PIECE_BYTES)[:_PIECE_BYTES]
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
    """Yield the whole steps before the step that fails, without the first `skip` bytes. Raises DamagedPayload."""
    reader = context.stream_reader(frame, read_across_frames=False, read_size=len(frame))
    while True:
        try:
            step = reader.read(_STEP_BYTES)
        except zstandard.ZstdError as error:
            raise DamagedPayload from error
        if not step:
            raise DamagedPayload
        if skip < len(step):
            yield memoryview(step)[skip:]
        skip = max(skip - len(step), 0)


class Frame:
    """A frame in a payload: its `end` (beyond the payload if it is truncated) and the window that it needs (bytes)."""

    def __init__(self) -> None:
        self.end = 0
        self.window_bytes = 0
        self.is_skippable = False


def frame_at(data: memoryview, position: int, budget: DecompressionBudget) -> Frame | None:
    """Return the frame at `position`, or None if there is none. Raises Abandoned."""
    if len(data) - position < _LEAST_FRAME_BYTES:
        return None
    frame = Frame()
    if _uint24(data, position + 1) == _SKIPPABLE_MAGIC_WITHOUT_FIRST and data[position] & 0xF0 == 0x50:
        size = data[position + 7]  # assigned to a wide variable first, because a C int would overflow
        size = size << 24 | _uint24(data, position + 4)
        frame.is_skippable = True
        frame.end = position + _LEAST_FRAME_BYTES + size
        return frame
    if _uint24(data, position) != _FRAME_MAGIC or data[position + 3] != _FRAME_MAGIC_TOP:
        return None
    frame.end = _end_of_blocks(data, _read_header(data, position, frame), budget)
    if frame.end <= len(data) and data[position + 4] & 4:
        frame.end += _CHECKSUM_BYTES
    return frame


def _read_header(data: memoryview, position: int, frame: Frame) -> int:
    """Set the frame's window. Return the position of the first block."""
    descriptor = data[position + 4]
    is_single_segment = descriptor >> 5 & 1
    position += 5
    if not is_single_segment:
        eighths = 8 + (data[position] & 7)
        frame.window_bytes = eighths << (7 + (data[position] >> 3))
        position += 1
    position += (1 << (descriptor & 3)) >> 1  # dictionary id: 0, 1, 2 or 4 bytes
    size_code = descriptor >> 6
    size_bytes = 1 << size_code if size_code else is_single_segment
    if is_single_segment:  # the content is its own window
        at = position + size_bytes - 1
        while at >= position:
            frame.window_bytes = frame.window_bytes * 256 + (data[at] if at < len(data) else 0)
            at -= 1
        if size_code == 1:
            frame.window_bytes += 256
    return position + size_bytes


def _end_of_blocks(data: memoryview, position: int, budget: DecompressionBudget) -> int:
    """Return the position after the last block. It is beyond the data if the frame is truncated."""
    blocks = 0
    while position + 3 <= len(data):
        header = _uint24(data, position)
        position += 3 + (1 if header >> 1 & 3 == _RLE_BLOCK else header >> 3)
        if header & 1:
            return position
        blocks += 1
        if blocks == _BLOCKS_BEFORE_GIVING_WAY:
            budget.worked(4 * blocks)
            blocks = 0
    return len(data) + 1


def _uint24(data: memoryview, at: int) -> int:
    return data[at] | data[at + 1] << 8 | data[at + 2] << 16
