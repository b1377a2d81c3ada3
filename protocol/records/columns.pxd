# The types that Cython compiles columns.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from sluicegate.protocol.records.scan cimport Cursor

cdef uint64_t _SIGN_64
cdef uint64_t _U64
cdef int64_t _MOST


cdef class Columns:
    cdef int64_t[::1] offset
    cdef int64_t[::1] timestamp
    cdef int64_t[::1] key_at
    cdef int64_t[::1] key_size
    cdef int64_t[::1] value_at
    cdef int64_t[::1] value_size
    cdef int64_t[::1] headers_at
    cdef int64_t[::1] headers_size


@cython.locals(cursor=Cursor, index=Py_ssize_t, length=int64_t, body=Py_ssize_t, body_end=Py_ssize_t, delta=uint64_t, size=int64_t)
cpdef Py_ssize_t read_columns(
    const uint8_t[::1] data, Py_ssize_t position, Py_ssize_t end, Py_ssize_t count, int64_t base_offset,
    uint64_t base_timestamp, Columns columns, Py_ssize_t row,
) except -1

@cython.locals(row=Py_ssize_t, last=Py_ssize_t, size=int64_t, start=int64_t)
cpdef Py_ssize_t gather(
    const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] sizes, Py_ssize_t first, Py_ssize_t count,
    int32_t[::1] ends, uint8_t[::1] values, Py_ssize_t filled,
) except -1

@cython.locals(cursor=Cursor, left=int64_t, size=int64_t, start=Py_ssize_t, found=list)
cpdef read_headers(const uint8_t[::1] data, Py_ssize_t position, Py_ssize_t end)

@cython.final
cdef class BatchTotals:
    cdef readonly int64_t records
    cdef readonly int64_t earliest
    cdef readonly int64_t latest
    cdef readonly int64_t null_keys
    cdef readonly int64_t bytes


@cython.locals(
    cursor=Cursor, totals=BatchTotals, index=Py_ssize_t, length=int64_t, body=Py_ssize_t, body_end=Py_ssize_t,
    timestamp=int64_t, size=int64_t, earliest=int64_t, latest=int64_t, null_keys=int64_t, filled=int64_t,
)
cpdef BatchTotals read_totals(
    const uint8_t[::1] data, Py_ssize_t position, Py_ssize_t end, Py_ssize_t count, uint64_t base_timestamp,
)

cdef int64_t _signed(uint64_t pattern) noexcept
