# The types that Cython compiles in_flight.py with. The file in_flight.py itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t


@cython.final
cdef class InFlightRequest:
    cdef readonly int64_t correlation_id
    cdef readonly object finish
    cdef readonly bytes response
    cdef readonly bint closes
    cdef readonly int produce_version
    cdef public double sent_at
    cdef public int api_key
    cdef public int stands_for
    cdef public int code_at
    cdef public int version
    cdef public object ended
    cdef public object sender
    cdef public object topics
    cdef public Py_ssize_t batches


@cython.final
cdef class InFlightTotal:
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t most

    cpdef bint is_full(self) except -1


@cython.final
cdef class InFlightQueue:
    cdef InFlightTotal _total
    cdef readonly Py_ssize_t count
    cdef Py_ssize_t _first
    cdef Py_ssize_t _last_place
    cdef list _ring

    @cython.locals(in_flight=InFlightRequest)
    cpdef InFlightRequest awaited(self)

    cpdef InFlightRequest newest(self)

    cpdef bint is_ready(self) except -1

    cpdef InFlightRequest pop_awaited(self)

    cpdef InFlightRequest pop_ready(self)

    @cython.locals(in_flight=InFlightRequest)
    cpdef InFlightRequest pop(self)

    cdef _make_room(self)

    cpdef add(self, InFlightRequest in_flight)

    cpdef clear(self)
