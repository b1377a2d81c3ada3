# cython: language_level=3
from sluicegate.proxy.session.connection cimport Connection
from sluicegate.proxy.fastpath.direct_outlet cimport DirectOutlet


cdef class PlainSockets:
    cdef readonly object loop
    cdef list _written
    cdef dict _open
    cdef int _failures
    cdef bint _in_turn
    cdef bint _sends_soon

    cdef _has_written(self, PlainSocket written)

    cdef _end_turn(self)


cdef class PlainSocket(DirectOutlet):
    cdef PlainSockets _all
    cdef object _socket
    cdef int _descriptor
    cdef object _protocol
    cdef Connection _connection
    cdef list _parts
    cdef Py_ssize_t _of_first
    cdef Py_ssize_t _unsent
    cdef bint _is_due
    cdef bint _waits
    cdef bint _full
    cdef bint _reading
    cdef bint _paused
    cdef bint _ended
    cdef bint _no_more
    cdef bint _closing
    cdef bint _given_up
    cdef bint _failed
    cdef bint _lost

    cdef _begin(self)

    cdef _has_failed(self)

    cdef _start_reading(self)

    cdef _stop_reading(self)

    cdef _take(self)

    cdef _receive(self)

    cdef _is_there_more(self)

    cdef _send(self)

    cdef ssize_t _send_some(self, ssize_t *wanted) except? -1

    cdef _sent(self, Py_ssize_t count)

    cdef _all_is_sent(self)

    cdef _tell_full(self)

    cdef _shut_down(self)

    cdef _give_up(self, error)
