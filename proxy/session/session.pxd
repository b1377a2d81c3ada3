# The types that Cython compiles session.py with; the file itself stays plain Python.
cimport cython

from sluicegate.proxy.network.connection cimport Connection
from sluicegate.proxy.session.in_flight cimport Exchange, InFlightQueue


cdef class Session:
    cdef readonly object context
    cdef readonly object route
    cdef readonly InFlightQueue queue
    cdef readonly object identity
    cdef readonly object account
    cdef readonly Connection client
    cdef readonly Connection broker
    cdef readonly object fast_requests
    cdef object _route_for
    cdef object _loop
    cdef Py_ssize_t _max_in_flight
    cdef object _requests
    cdef object _answers
    cdef bint _has_begun
    cdef object _connecting
    cdef list _frames_sent
    cdef object _deadlines
    cdef object _address
    cdef object _linger
    cdef object _ends_upstream
    cdef object _trace
    cdef object _told_peer
    cdef bint _broker_open
    cdef bint _draining
    cdef bint _goodbye_due
    cdef bint _said_goodbye
    cdef bint _has_ended

    @cython.locals(exchange=Exchange)
    cpdef flush_ready(self)

    cpdef frame_was_sent(self, bytearray frame)

    cpdef bint is_late(self) except -1
