# The types that Cython compiles session.py with; the file itself stays plain Python.
cimport cython

from sluicegate.proxy.session.connection cimport Connection
from sluicegate.proxy.session.in_flight cimport InFlightQueue


cdef class Session:
    cdef object _needs
    cdef readonly InFlightQueue queue
    cdef readonly object identity
    cdef readonly object account
    cdef readonly Connection client
    cdef readonly Connection broker
    cdef readonly object fast_requests
    cdef readonly object sent_frames
    cdef readonly object delivery
    cdef object _route_for
    cdef object _told_peer
    cdef Py_ssize_t _max_in_flight
    cdef object _deadlines
    cdef object _life
    cdef object _trace
    cdef object _requests
    cdef object _answers
    cdef object _leaving
    cdef object _arrival

    cpdef bint is_late(self) except -1
