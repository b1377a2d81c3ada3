# cython: language_level=3
from libc.stdint cimport int64_t, uint8_t

from sluicegate.protocol.framing cimport OrdinaryFrames
from sluicegate.proxy.session.connection cimport Connection
from sluicegate.proxy.session.in_flight cimport Exchange, InFlightQueue
from sluicegate.proxy.fastpath.counts cimport LaneCounts
from sluicegate.proxy.fastpath.memory cimport LaneRoom
from sluicegate.validation.ordinary cimport OrdinaryRequests


cdef class FastRequests(OrdinaryFrames):
    cdef OrdinaryRequests _judge
    cdef LaneCounts _counts
    cdef object _side
    cdef InFlightQueue _queue
    cdef Py_ssize_t _max_in_flight
    cdef Py_ssize_t _max_frame_bytes
    cdef object _turn  # a LoopTurn
    cdef Connection _client
    cdef Connection _broker
    cdef object _turn_is_over
    cdef int _header_version
    cdef bytes _header
    cdef long long _header_generation
    cdef object _finish
    cdef int _finish_version
    cdef object _data
    cdef object _wider
    cdef const uint8_t[::1] _view
    cdef bint has_looked
    cdef object _charge
    cdef LaneRoom _lane_room
    cdef bytes _begun
    cdef Py_ssize_t _filled

    cdef Py_ssize_t _take(
        self, object data, const uint8_t[::1] view, Py_ssize_t position, Py_ssize_t end
    ) except -1
    cdef bint _knows_header(self, int version) noexcept
    cdef bint _is_good(
        self, object data, const uint8_t[::1] view, Py_ssize_t start, Py_ssize_t size, int version, int64_t now
    ) except -1
    cdef bint _has_known_header(self, const uint8_t *frame, Py_ssize_t size) noexcept
    cdef bint _begins(self, const uint8_t *start, Py_ssize_t have, Py_ssize_t size) except -1
    cdef bint _passes_on(self, bytes frame) except -1
    cdef _reads_whole(self, Py_ssize_t size)
    cpdef Exchange exchange(self, int64_t correlation_id, int version)


cdef class FastAnswers(OrdinaryFrames):
    cdef LaneCounts _counts
    cdef InFlightQueue _queue
    cdef Connection _client
    cdef object _data
    cdef const uint8_t[::1] _view

    cdef Py_ssize_t _take(self, const uint8_t *origin, Py_ssize_t position, Py_ssize_t end) except -1
