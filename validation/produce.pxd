# The types that Cython compiles produce.py with; the file itself stays plain Python.
cimport cython

from sluicegate.protocol.produce_request cimport PartitionData, ProduceRequest, TopicData
from sluicegate.protocol.records.allowance cimport Allowance
from sluicegate.protocol.records.compression cimport Decompressor
from sluicegate.protocol.records.record_batch cimport opens_transactional
from sluicegate.validation.judge cimport Submission, judge_partition

cdef Py_ssize_t _PARTITION_WORK


cdef class JudgedRequest:
    cdef readonly dict accepted
    cdef readonly dict refused
    cdef readonly dict held_to
    cdef public object observed
    cdef public object fixed
    cdef public object rehearsed
    cdef public object to_quarantine
    cdef public object quarantined
    cdef public object left_open
    cdef public Py_ssize_t unchecked
    cdef public Py_ssize_t exempt


@cython.locals(judged=JudgedRequest, topic=TopicData, partition=PartitionData)
cpdef judge_request(ProduceRequest request, names, policy_of, limits, now_ms, Decompressor decompressor, Allowance allowance, previous=*, client=*)

@cython.locals(topic=TopicData, t=Py_ssize_t, p=Py_ssize_t)
cdef _whole_request(ProduceRequest request)
