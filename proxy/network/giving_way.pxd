# cython: language_level=3
cimport cython
from libc.stdint cimport int64_t, uint64_t

from sluicegate.proxy.network.run_delay cimport RunDelay


@cython.final
cdef class GivingWay:
    cdef readonly uint64_t slice_ns
    cdef readonly uint64_t times
    cdef readonly uint64_t naps
    cdef RunDelay _delay
    cdef Py_ssize_t _taken
    cdef int64_t _ran
    cdef int64_t _now
    cdef int64_t _period
    cdef int64_t _small_asked
    cdef int64_t _waited
    cdef int64_t _waited_at
    cdef int64_t _wanted_until
    cdef int _slices
    cdef bint _can_nap

    cpdef void has_taken(self, Py_ssize_t count) noexcept

    cdef void _look(self) noexcept

    cdef void _let_small_go_first(self, int64_t now) noexcept


@cython.final
cdef class ClientShare:
    cdef GivingWay _giving_way
    cdef int64_t _period
    cdef Py_ssize_t _now
    cdef Py_ssize_t _before

    cpdef void has_taken(self, Py_ssize_t count) noexcept

    cpdef void has_given(self, Py_ssize_t count) noexcept

    cdef void _count(self, Py_ssize_t count) noexcept
