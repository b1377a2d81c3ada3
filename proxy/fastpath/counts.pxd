# cython: language_level=3
from sluicegate.proxy.session.in_flight cimport Exchange


cdef class LaneCounts:
    cdef readonly object clock
    cdef readonly object failed
    cdef long long[128] taken  # that lay whole in the read buffer
    cdef long long[128] gathered  # that did not
    cdef long long[128] due_at  # how many are taken before the next that is timed
    cdef long long[128] _timed  # how many were taken when one was timed last

    cdef double now(self) except? -1

    cdef int time(self, int key, double came, Exchange exchange) except -1
