# Integers as Kafka writes them, read in place: for what is compiled only.
from libc.stdint cimport int16_t, int32_t, uint8_t, uint32_t, uint64_t


cdef inline uint32_t uint32_at(const uint8_t *at) noexcept:
    return <uint32_t>at[0] << 24 | <uint32_t>at[1] << 16 | <uint32_t>at[2] << 8 | at[3]


cdef inline int32_t int32_at(const uint8_t *at) noexcept:
    return <int32_t>uint32_at(at)


cdef inline int16_t int16_at(const uint8_t *at) noexcept:
    return <int16_t>(<uint32_t>at[0] << 8 | at[1])


cdef inline uint64_t uint64_at(const uint8_t *at) noexcept:
    return <uint64_t>uint32_at(at) << 32 | uint32_at(at + 4)
