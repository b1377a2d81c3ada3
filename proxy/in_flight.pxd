# The types that Cython compiles in_flight.py with; the file itself stays plain Python.
cimport cython


cdef class Exchange:
    cdef readonly object correlation_id
    cdef readonly object finish
    cdef readonly bytes answer
    cdef readonly bint closes
    cdef readonly int produce_version


cdef class InFlightQueue:
    cdef object _exchanges

    @cython.locals(exchange=Exchange)
    cpdef Exchange awaited(self)

    cpdef pop_awaited(self)

    @cython.locals(exchange=Exchange)
    cpdef pop_ready(self)

    cpdef add(self, Exchange exchange)
