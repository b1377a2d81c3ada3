# The types that Cython compiles stand_in.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport uint8_t

from sluicegate.protocol.records.record_batch cimport RecordBatch, magic_at, next_batch_end

cdef int _MAGIC_2
cdef Py_ssize_t _BATCHES_AT_ONCE


@cython.locals(data="const uint8_t[::1]", start=Py_ssize_t, seen=Py_ssize_t)
cpdef breaking_piece(records, give_way)
