"""Whether a zstd payload ends where its last frame does (RFC 8878, section 3.1).

python-zstandard's reader takes a cut frame for its end; a broker answers an error for it, so the blocks are counted
here. No block is decompressed.
"""

_FRAME_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE_MAGIC_TAIL = b"\x2a\x4d\x18"
_DICTIONARY_ID_BYTES = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_CHECKSUM_BYTES = 4
_RLE_BLOCK = 1


def zstd_ends_whole(data: memoryview) -> bool:
    """True when `data` is whole frames and nothing else (an empty payload is)."""
    position = 0
    while position < len(data):
        frame_end = _frame_end(data, position)
        if frame_end is None or frame_end > len(data):
            return False
        position = frame_end
    return True


def _frame_end(data: memoryview, position: int) -> int | None:
    """Where the frame at `position` ends; None when it is cut or no frame."""
    if len(data) - position < 8:
        return None
    if bytes(data[position + 1 : position + 4]) == _SKIPPABLE_MAGIC_TAIL:
        return position + 8 + int.from_bytes(data[position + 4 : position + 8], "little")
    if bytes(data[position : position + 4]) != _FRAME_MAGIC:
        return None
    descriptor = data[position + 4]
    single_segment = descriptor >> 5 & 1
    position += 5 + (0 if single_segment else 1) + _DICTIONARY_ID_BYTES[descriptor & 3]
    position += _CONTENT_SIZE_BYTES[descriptor >> 6] or single_segment
    while True:
        if position + 3 > len(data):
            return None
        header = int.from_bytes(data[position : position + 3], "little")
        size = 1 if header >> 1 & 3 == _RLE_BLOCK else header >> 3
        position += 3 + size
        if header & 1:
            return position + (_CHECKSUM_BYTES if descriptor >> 2 & 1 else 0)
