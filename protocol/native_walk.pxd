# Reads bytes in C for the fast path: Kafka's integers in place, and a walk that sets `failed` instead of raising. Only
# the walk knows where the bytes end, so the caller compares before it reads an integer.
from libc.stdint cimport int16_t, int32_t, uint8_t, uint32_t, uint64_t


cdef struct NativeWalk:
    const uint8_t *at
    const uint8_t *end
    bint failed


cdef inline uint64_t uvarint(NativeWalk *walk) noexcept:
    # An int32 takes at most five bytes.
    cdef uint64_t value = 0
    cdef int shift = 0
    cdef uint8_t byte
    while walk.at < walk.end and shift <= 28:
        byte = walk.at[0]
        walk.at += 1
        value |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            return value
        shift += 7
    walk.failed = True
    return 0


cdef inline uint32_t uint32_at(const uint8_t *at) noexcept:
    return <uint32_t>at[0] << 24 | <uint32_t>at[1] << 16 | <uint32_t>at[2] << 8 | at[3]


cdef inline int32_t int32_at(const uint8_t *at) noexcept:
    return <int32_t>uint32_at(at)


cdef inline int16_t int16_at(const uint8_t *at) noexcept:
    return <int16_t>(<uint32_t>at[0] << 8 | at[1])


cdef inline uint64_t uint64_at(const uint8_t *at) noexcept:
    return <uint64_t>uint32_at(at) << 32 | uint32_at(at + 4)
