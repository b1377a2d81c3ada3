from libc.stdint cimport uint8_t

cdef bint is_json(const uint8_t *at, const uint8_t *end, int max_depth) noexcept nogil
