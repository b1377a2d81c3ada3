# The types that Cython compiles json_weight.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t, uint8_t

cdef int _OF_CONTAINER
cdef int _OF_KEY
cdef int _OPENS_LIST
cdef int _OPENS_OBJECT
cdef int _COLON
cdef int _COMMA
cdef int _QUOTE
cdef int _BACKSLASH


@cython.locals(size=int64_t)
cpdef bint is_too_heavy(bytes text, int64_t most=*) except -1

@cython.locals(at=int64_t, weight=int64_t, byte=uint8_t)
cdef bint _weighs_more(const unsigned char* data, int64_t end, int64_t most) noexcept
