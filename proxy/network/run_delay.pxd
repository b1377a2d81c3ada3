# cython: language_level=3
from libc.stdint cimport int64_t


cdef class RunDelay:
    cdef int _file

    cpdef int64_t nanoseconds(self) noexcept
