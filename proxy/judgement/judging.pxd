# The types that Cython compiles judging.py with; the file itself stays plain Python.
cimport cython

from sluicegate.protocol.produce_request cimport PartitionData, ProduceRequest, TopicData
from sluicegate.protocol.records.allowance cimport Allowance
from sluicegate.protocol.records.record_batch cimport attributes_low_byte
from sluicegate.validation.produce cimport judge_request

cdef Py_ssize_t _LOOP_TURN_BYTES
cdef Py_ssize_t _LOOP_REQUEST_BYTES


cdef class Judges:
    cdef object _names
    cdef object _rules
    cdef object _limits
    cdef object _now_ms
    cdef object _prepare
    cdef object _call_soon
    cdef object _room
    cdef object _decompressor
    cdef object _memo
    cdef object _previous
    cdef Py_ssize_t _loop_left
    cdef bint _loop_turn_ends
    cdef object _turns
    cdef object _changed
    cdef object _thread
    cdef bint _closed

    @cython.locals(size=Py_ssize_t, most=Py_ssize_t, allowance=Allowance)
    cpdef judge(self, ProduceRequest request, client=*)

    cdef _dispatch(self, ProduceRequest request, judged, give_way)


@cython.locals(topic=TopicData, partitions=Py_ssize_t, size=Py_ssize_t)
cpdef bint is_heavy(ProduceRequest request) except -1

@cython.locals(topic=TopicData, partition=PartitionData, compressed=Py_ssize_t, plain=Py_ssize_t, size=Py_ssize_t)
cdef bint _is_heavy_by_size(ProduceRequest request) except -1
