# cython: language_level=3
from sluicegate.proxy.session.in_flight cimport Exchange


cdef class PathCounts:
    cdef readonly object clock
    cdef readonly object failed
    cdef readonly int keys  # the lowest API key that is none
    cdef long long *taken  # that lay whole in the read buffer
    cdef long long *gathered  # that did not
    cdef long long *due_at  # how many are taken before the next that is timed
    cdef long long *_timed  # how many were taken when one was timed last

    cdef double now(self) except? -1

    cdef int time(self, int key, double came, Exchange exchange) except -1


cdef class FastPathBuffer:
    cdef readonly Py_ssize_t total_bytes
    cdef readonly Py_ssize_t held_bytes

    cdef bint take(self, Py_ssize_t size) noexcept

    cdef void give_back(self, Py_ssize_t size) noexcept
