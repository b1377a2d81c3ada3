# The types that Cython compiles judging.py with; the file itself stays plain Python.
cimport cython

from protocol.produce_request cimport PartitionData, ProduceRequest, TopicData
from protocol.records.record_batch cimport attributes_low_byte
from validation.produce cimport judge_request


cdef class Judges:
    cdef object _names
    cdef object _policy_of
    cdef object _limits
    cdef object _now_ms
    cdef object _decompressor
    cdef object _threads
    cdef object _of_thread

    cpdef judge(self, ProduceRequest request)


@cython.locals(topic=TopicData, partition=PartitionData, compressed=Py_ssize_t, plain=Py_ssize_t, size=Py_ssize_t)
cpdef bint is_heavy(ProduceRequest request) except -1
