# The types that Cython compiles pacing.py with; the file itself stays plain Python.
cimport cython


@cython.final
cdef class LoopTurn:
    cdef object _call_soon
    cdef object _now
    cdef double _half_seconds
    cdef double _since
    cdef bint _is_marked
    cdef readonly long times_late

    @cython.locals(now=double)
    cpdef bint is_late(self) except -1
