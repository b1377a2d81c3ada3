# The types that Cython compiles judge.py with; the file itself stays plain Python.
cimport cython

from libc.stdint cimport uint64_t

from protocol.records.record_batch cimport RecordBatch, magic_at, next_batch_end
from protocol.records.scan cimport scan_records
from validation.record_errors cimport what_to_look_for
from validation.structure cimport check_header, check_request_rules, check_stored_form
from validation.timestamps cimport TimeWindow, window_of

cdef int _ONE_V2_BATCH_SINCE
cdef int _MAGIC_2
cdef int _PLAIN


cdef class Submission:
    cdef readonly str topic
    cdef readonly object partition
    cdef readonly object records
    cdef readonly int version


@cython.locals(has_rules=bint)
cpdef judge_partition(Submission submission, policy, limits, now_ms, decompressor)

@cython.locals(
    framed=bint, start=Py_ssize_t, end=Py_ssize_t, window=TimeWindow, look_for=int, outcome=int, read=Py_ssize_t,
    earliest=uint64_t, width=uint64_t, exempt=uint64_t, overflow=uint64_t,
)
cdef _judge_records(Submission submission, records, RecordBatch batch, policy, limits, now_ms, decompressor)
