# The types that Cython compiles totals.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from sluicegate.protocol.records.scan cimport Cursor

cdef uint64_t _SIGN_64
cdef uint64_t _U64
cdef int64_t _MOST


@cython.final
cdef class Totals:
    cdef readonly int64_t records
    cdef readonly int64_t earliest
    cdef readonly int64_t latest
    cdef readonly int64_t null_keys
    cdef readonly int64_t bytes


@cython.locals(
    cursor=Cursor, totals=Totals, index=Py_ssize_t, length=int64_t, body=Py_ssize_t, body_end=Py_ssize_t,
    timestamp=int64_t, size=int64_t, earliest=int64_t, latest=int64_t, null_keys=int64_t, filled=int64_t,
)
cpdef Totals read_totals(
    const uint8_t[::1] data, Py_ssize_t position, Py_ssize_t end, Py_ssize_t count, uint64_t base_timestamp,
)

cdef int64_t _signed(uint64_t pattern) noexcept
