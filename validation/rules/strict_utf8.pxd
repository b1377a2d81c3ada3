# The types that Cython compiles strict_utf8.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t, uint8_t


@cython.locals(first=uint8_t, least=uint8_t, most=uint8_t, size=int64_t, place=int64_t)
cpdef int64_t behind_character(const unsigned char* data, int64_t at, int64_t end) noexcept

@cython.locals(stop=int64_t)
cpdef bint is_text(const unsigned char* data, int64_t at, int64_t end) noexcept

@cython.locals(bits=uint8_t, place=int64_t)
cdef bint _is_ascii(const unsigned char* data, int64_t at) noexcept
