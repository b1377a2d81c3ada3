from libc.stdint cimport int64_t, uint8_t

cdef struct Asked:
    # BytesQuestion as a C struct.
    bint required
    int64_t least
    int64_t most
    bint is_text
    int json_depth
    bint is_read  # whether any check needs the bytes


cdef class OrdinaryContents:
    cdef Asked _key
    cdef Asked _value
    cdef list _key_schemas
    cdef list _value_schemas
    cdef int64_t _most_records
    cdef int64_t _most_bytes

    cdef bint accepts_records(self, const uint8_t *at, const uint8_t *end, int64_t count)
    cdef bint _is_good(self, const uint8_t *at, int64_t size, const Asked *asked, list schemas)
