# cython: language_level=3
from libc.stdint cimport uint8_t

from sluicegate.protocol.framing cimport OrdinaryFrames
from sluicegate.proxy.in_flight cimport Exchange, InFlightQueue
from sluicegate.validation.ordinary cimport OrdinaryRequests


cdef class FastRequests(OrdinaryFrames):
    cdef OrdinaryRequests _judge
    cdef object _session
    cdef object _side
    cdef InFlightQueue _queue
    cdef int _header_version
    cdef bytes _header
    cdef object _finish
    cdef int _finish_version
    cdef object _data
    cdef const uint8_t[::1] _view
    cdef bint has_looked

    cdef int _write(self, char *first, Py_ssize_t size) except -1
    cdef bint _is_good(
        self, object data, const uint8_t[::1] view, Py_ssize_t start, Py_ssize_t size, int version
    ) except -1
    cpdef Exchange exchange(self, object correlation_id, int version)


cdef class FastAnswers(OrdinaryFrames):
    cdef object _session
    cdef InFlightQueue _queue
    cdef object _data
    cdef const uint8_t[::1] _view
