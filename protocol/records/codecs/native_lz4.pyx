"""A payload's plain bytes, where it is an lz4 frame as producers write it: one native pass, no piece, no object.

What is ordinary here and what comes out of it are the same for `sluicegate.protocol.records.codecs.lz4_blocks`, which reads
all other frames and says what is wrong with them.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from sluicegate.protocol.records.codecs.loaded_libraries cimport lz4_decompress_safe
from sluicegate.protocol.records.codecs.lz4_blocks cimport (
    _BLOCK_CHECKSUM, _CHECKSUM_BYTES, _CONTENT_CHECKSUM, _CONTENT_SIZE, _CONTENT_SIZE_BYTES, _DESCRIPTOR_AT, _FLAGS_AT,
    _HEAD_BYTES, _KNOWN_FLAGS, _MAGIC, _SIZE_AT, _SIZE_BYTES, _SIZE_MASK, _SMALLEST_BLOCK_CODE,
    _VERSION_1_INDEPENDENT_BLOCKS, _xxh32,
)

cdef inline uint32_t _little_endian(const uint8_t *at) noexcept:
    return at[0] | at[1] << 8 | at[2] << 16 | <uint32_t>at[3] << 24


# What a block costs at least, as in pieces.py.
cdef Py_ssize_t _LEAST_BYTES = 2048


cdef Py_ssize_t ordinary_lz4(
    const uint8_t[::1] data, Py_ssize_t start, Py_ssize_t end, uint8_t *room, Py_ssize_t most
) noexcept:
    """How many bytes data[start:end] becomes, in `room`; -1 where it is no ordinary frame, or counts for over `most`."""
    cdef const uint8_t *at = &data[start]
    cdef Py_ssize_t left = end - start
    cdef Py_ssize_t head = _HEAD_BYTES
    cdef Py_ssize_t filled = 0
    cdef Py_ssize_t spent = 0
    cdef Py_ssize_t block_bytes, stored, came
    cdef uint64_t content_bytes = 0
    cdef uint32_t size
    cdef int flags, descriptor
    if lz4_decompress_safe == NULL or left <= head or _little_endian(at) != _MAGIC:
        return -1
    flags = at[_FLAGS_AT]
    descriptor = at[_DESCRIPTOR_AT]
    if flags & _KNOWN_FLAGS != _VERSION_1_INDEPENDENT_BLOCKS or flags & _BLOCK_CHECKSUM or descriptor & 0x8F:
        return -1
    if descriptor >> 4 < _SMALLEST_BLOCK_CODE:
        return -1
    block_bytes = <Py_ssize_t>1 << (8 + 2 * (descriptor >> 4))
    if flags & _CONTENT_SIZE:
        head += _CONTENT_SIZE_BYTES
        if head <= left:
            content_bytes = _little_endian(at + _SIZE_AT) | <uint64_t>_little_endian(at + _SIZE_AT + 4) << 32
    if head > left or at[head - 1] != _xxh32(data, start + _FLAGS_AT, start + head - 1) >> 8 & 0xFF:
        return -1
    at += head
    left -= head
    while True:
        if left < _SIZE_BYTES:
            return -1
        size = _little_endian(at)
        stored = size & _SIZE_MASK
        at += _SIZE_BYTES
        left -= _SIZE_BYTES
        if stored == 0:
            # Nothing but the content checksum follows the end mark, which an empty raw block is not.
            if size != 0 or left != (_CHECKSUM_BYTES if flags & _CONTENT_CHECKSUM else 0):
                return -1
            return filled if content_bytes == 0 or content_bytes == <uint64_t>filled else -1
        if stored > left:
            return -1
        if size != <uint32_t>stored:
            if stored > block_bytes or stored > most - filled:
                return -1
            memcpy(room + filled, at, stored)
            came = stored
        else:
            came = lz4_decompress_safe(at, room + filled, <int>stored, <int>min(block_bytes, most - filled))
            if came < 0:
                return -1
        filled += came
        spent += max(came, _LEAST_BYTES)
        if spent > most:
            return -1
        at += stored
        left -= stored
