# The types that Cython compiles session.py with; the file itself stays plain Python.
cimport cython

from proxy.connection cimport Connection
from proxy.in_flight cimport Exchange, InFlightQueue


cdef double _NO_FRAME


cdef class Session:
    cdef readonly object context
    cdef readonly object route
    cdef readonly InFlightQueue queue
    cdef readonly object identity
    cdef readonly list frames_sent
    cdef readonly Connection client
    cdef readonly Connection broker
    cdef object _route_for
    cdef object _loop
    cdef Py_ssize_t _max_in_flight
    cdef object _requests
    cdef object _answers
    cdef object _connecting
    cdef object _frame_timer
    cdef double _frame_deadline
    cdef object _linger
    cdef bint _broker_open
    cdef bint _draining
    cdef bint _goodbye_due
    cdef bint _said_goodbye

    @cython.locals(exchange=Exchange)
    cpdef flush_ready(self)
