# The types that Cython compiles count.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t, uint8_t

cdef int _DEEPEST
cdef int _LEVELS
cdef int _THREE
cdef int64_t _RUN
cdef int _OF_NUMBER
cdef int _OF_POINT
cdef int _OF_EXPONENT
cdef int _OF_NEGATIVE_EXPONENT


@cython.final
cdef class JsonCount:
    cdef object _counts
    cdef int64_t[::1] _view
    cdef readonly int64_t containers
    cdef readonly int64_t keys
    cdef readonly int levels
    cdef int64_t _deeper

    @cython.locals(at=int64_t, depth=int, byte=uint8_t)
    cdef int _count(self, const unsigned char* data, int64_t end) except -1


cpdef double weighted_sum(bytes text, double[::1] weights, double of_container, double of_key) except? -1

@cython.locals(
    at=int64_t, begin=int64_t, depth=int64_t, level=int64_t, before=uint8_t, byte=uint8_t, in_number=bint,
    of_item=double, of_byte=double, of_quarter=double, total=double
)
cdef double _weighed(
    const unsigned char* data, int64_t end, double[::1] weights, int64_t last, double of_container, double of_key
) noexcept

@cython.locals(stop=int64_t)
cdef int64_t _end_of_string(const unsigned char* data, int64_t at, int64_t end) noexcept

@cython.locals(bits=int, place=int)
cdef bint _is_plain(const unsigned char* data, int64_t at) noexcept
