# cython: language_level=3
cimport cython
from libc.stdint cimport int64_t, uint64_t


@cython.final
cdef class GivingWay:
    cdef readonly uint64_t slice_ns
    cdef readonly uint64_t times
    cdef Py_ssize_t _taken
    cdef int64_t _ran
    cdef int64_t _now

    cpdef void has_taken(self, Py_ssize_t count) noexcept

    cdef void _look(self) noexcept
