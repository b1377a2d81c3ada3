# The types that Cython compiles cost.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t, uint8_t

cdef int64_t _OF_FIELD
cdef int64_t _OF_GROUP
cdef int64_t _OF_VARINT
cdef int64_t _OF_BYTE
cdef int64_t _MOST_COUNTED
cdef int _EIGHT_BYTES
cdef int _LENGTH
cdef int _GROUP
cdef int _END_GROUP
cdef int _FOUR_BYTES
cdef int _MOST_DEPTH
cdef int _LAST_SHIFT
cdef int _CONTINUES


cdef class FieldContent:
    cdef object message
    cdef int64_t cost
    cdef bint is_packed
    cdef dict fields


cdef class _Walk:
    cdef bytes _data
    cdef object _kinds
    cdef int64_t _at

    @cython.locals(
        cost=int64_t, end=int64_t, tag=int64_t, size=int64_t, wire_type=int, kind=FieldContent, outer=list, in_group=bint
    )
    cpdef int64_t cost(self, dict kinds, int64_t cost) except -1

    cpdef int64_t left(self)

    cdef dict _fields(self, FieldContent kind)

    @cython.locals(value=int64_t, byte=uint8_t, shift=int)
    cdef int64_t _varint(self, int64_t end) noexcept
