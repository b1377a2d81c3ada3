# The types that Cython compiles judge.py with; the file itself stays plain Python.
cimport cython

from libc.stdint cimport uint8_t, uint64_t

from sluicegate.protocol.records.allowance cimport Allowance
from sluicegate.protocol.records.compression cimport Decompressor
from sluicegate.protocol.records.message_set cimport Message
from sluicegate.protocol.records.pieces cimport Bounds, Pieces
from sluicegate.protocol.records.record_batch cimport RecordBatch, magic_at, next_batch_end
from sluicegate.protocol.records.rehearsal cimport Rehearsal
from sluicegate.protocol.records.scan cimport Findings, scan_records
from sluicegate.validation.legacy cimport check_stored_message
from sluicegate.validation.record_errors cimport what_to_look_for
from sluicegate.validation.structure cimport check_header, check_request_rules, check_stored_form
from sluicegate.validation.timestamps cimport TimeWindow, window_of

cdef int ONE_BATCH_SINCE
cdef int _MAGIC_2
cdef int _PLAIN
cdef Py_ssize_t _TEXTS_AT_LEAST
cdef Py_ssize_t _BATCH_WORK


cdef class Submission:
    cdef readonly str topic
    cdef readonly object partition
    cdef readonly object records
    cdef readonly int version


@cython.locals(has_rules=bint, data="const uint8_t[::1]")
cpdef judge_partition(
    Submission submission, policy, limits, now_ms, Decompressor decompressor, Allowance allowance, Rehearsal rehearsal=*,
)

@cython.locals(several=bint, data="const uint8_t[::1]", message=Message)
cdef _check_further_batches(records, Py_ssize_t start, policy, Allowance allowance)

@cython.locals(codec_id=int, start=Py_ssize_t, bounds=Bounds, pieces=Pieces)
cdef _judge_records(
    Submission submission, records, RecordBatch batch, policy, limits, now_ms, Decompressor decompressor,
    Allowance allowance, Rehearsal rehearsal,
)

@cython.locals(
    window=TimeWindow, look_for=int, keep=Py_ssize_t, outcome=int, read=Py_ssize_t, earliest=uint64_t, width=uint64_t,
    exempt=uint64_t, overflow=uint64_t, is_damaged=bint, bad=Findings, tried=TimeWindow,
)
cdef _scan(
    Submission submission, data, Py_ssize_t start, Py_ssize_t end, Pieces pieces, RecordBatch batch, policy, now_ms,
    Allowance allowance, Rehearsal rehearsal,
)

cdef _broken(int outcome, bint is_damaged)
