# The types that Cython compiles protobuf_weight.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t, uint8_t

cdef int64_t _MOST_WEIGHT
cdef int _OF_ENTRY
cdef int _OF_MESSAGE
cdef int _OF_FIELD
cdef int _PACKED_BYTES
cdef int64_t _LIGHT_BYTES
cdef int _VARINT
cdef int _EIGHT_BYTES
cdef int _LENGTH
cdef int _FOUR_BYTES
cdef int _MOST_DEPTH
cdef int _LAST_SHIFT
cdef int _CONTINUES


cdef class Kind:
    cdef object message
    cdef int weight
    cdef bint is_packed
    cdef dict fields


cdef class _Walk:
    cdef bytes _data
    cdef dict _known
    cdef int64_t _at

    @cython.locals(weight=int64_t, end=int64_t, tag=int64_t, size=int64_t, wire_type=int, kind=Kind, outer=list)
    cpdef bint weighs_more(self, dict kinds) except -1

    @cython.locals(value=int64_t, byte=uint8_t, shift=int)
    cdef int64_t _varint(self, int64_t end) noexcept
