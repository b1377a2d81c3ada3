"""Where a zstd frame ends and which window it asks for (RFC 8878, section 3.1), without decompressing a block.

python-zstandard's reader takes a cut frame for its end; a broker answers an error for it, so blocks are walked here.
"""

from sluicegate.protocol.records.codecs.decompression_budget import Allowance

# Little-endian, as what follows is.
_FRAME_MAGIC = 0x28 | 0xB5 << 8 | 0x2F << 16
_FRAME_MAGIC_TOP = 0xFD
_SKIPPABLE_MAGIC_WITHOUT_FIRST = 0x2A | 0x4D << 8 | 0x18 << 16
_LEAST_FRAME_BYTES = 8
_CHECKSUM_BYTES = 4
_RLE_BLOCK = 1
_BLOCKS_BEFORE_GIVING_WAY = 1 << 16


class Frame:
    """A frame of a payload: its `end`, beyond the payload's where it is cut, and the window it asks for (bytes)."""

    def __init__(self) -> None:
        self.end = 0
        self.window_bytes = 0
        self.is_skippable = False


def frame_at(data: memoryview, position: int, allowance: Allowance) -> Frame | None:
    """The frame at `position`; None where there is none. Raises Abandoned."""
    if len(data) - position < _LEAST_FRAME_BYTES:
        return None
    frame = Frame()
    if _uint24(data, position + 1) == _SKIPPABLE_MAGIC_WITHOUT_FIRST and data[position] & 0xF0 == 0x50:
        size = data[position + 7]  # first into a wide variable: a C int would overflow
        size = size << 24 | _uint24(data, position + 4)
        frame.is_skippable = True
        frame.end = position + _LEAST_FRAME_BYTES + size
        return frame
    if _uint24(data, position) != _FRAME_MAGIC or data[position + 3] != _FRAME_MAGIC_TOP:
        return None
    frame.end = _end_of_blocks(data, _read_header(data, position, frame), allowance)
    if frame.end <= len(data) and data[position + 4] & 4:
        frame.end += _CHECKSUM_BYTES
    return frame


def _read_header(data: memoryview, position: int, frame: Frame) -> int:
    """Note the window; where the first block begins."""
    descriptor = data[position + 4]
    is_single_segment = descriptor >> 5 & 1
    position += 5
    if not is_single_segment:
        eighths = 8 + (data[position] & 7)
        frame.window_bytes = eighths << (7 + (data[position] >> 3))
        position += 1
    position += (1 << (descriptor & 3)) >> 1  # a dictionary's id: 0, 1, 2 or 4 bytes
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


def _end_of_blocks(data: memoryview, position: int, allowance: Allowance) -> int:
    """Behind the last block; beyond the data where it is cut."""
    blocks = 0
    while position + 3 <= len(data):
        header = _uint24(data, position)
        position += 3 + (1 if header >> 1 & 3 == _RLE_BLOCK else header >> 3)
        if header & 1:
            return position
        blocks += 1
        if blocks == _BLOCKS_BEFORE_GIVING_WAY:
            allowance.worked(4 * blocks)
            blocks = 0
    return len(data) + 1


def _uint24(data: memoryview, at: int) -> int:
    return data[at] | data[at + 1] << 8 | data[at + 2] << 16
