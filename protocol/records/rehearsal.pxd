# The types that Cython compiles rehearsal.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t, uint64_t

cdef uint64_t _SIGN_64
cdef uint64_t _U64


@cython.final
cdef class Rehearsal:
    cdef int64_t _before_max_ms
    cdef int64_t _after_max_ms
    cdef int64_t[::1] _befores
    cdef int64_t[::1] _afters
    cdef Py_ssize_t _before_count
    cdef Py_ssize_t _after_count
    cdef int64_t[::1] _counts
    cdef uint64_t _now_delta
    cdef readonly int64_t ahead_ms
    cdef readonly bint keeps_any

    @cython.locals(behind=int64_t, ahead=int64_t, i=Py_ssize_t)
    cpdef bint rejects(self, uint64_t delta) except -1

cdef int64_t _signed(uint64_t pattern) noexcept
