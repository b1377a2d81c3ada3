# The types that Cython compiles restamp.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from sluicegate.protocol.records.codecs.decompression_budget cimport DecompressionBudget
from sluicegate.protocol.records.scan cimport Cursor

cdef uint64_t _SIGN_64
cdef uint64_t _U64
cdef Py_ssize_t _RECORD_WORK


@cython.locals(
    cursor=Cursor, end=Py_ssize_t, payload=bytearray, index=Py_ssize_t, length=int64_t, body=Py_ssize_t, rest=Py_ssize_t,
    headers=int64_t, base=uint64_t,
)
cpdef restamp_records(data, Py_ssize_t count, base_timestamp, new_time, DecompressionBudget budget)
