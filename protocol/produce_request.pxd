# The types that Cython compiles produce_request.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t

from sluicegate.protocol.walk cimport Walk

cdef Py_ssize_t _UUID_BYTES
cdef Py_ssize_t _INT32_BYTES
cdef int64_t _NAME_BYTES_OF_A_TOPIC
cdef int64_t _NAME_BYTES


cdef class PartitionData:
    cdef readonly int64_t index
    cdef readonly Py_ssize_t entry_at
    cdef readonly Py_ssize_t records_at
    cdef readonly Py_ssize_t records_end


cdef class TopicData:
    cdef readonly str name
    cdef readonly bytes topic_id
    cdef readonly list partitions


cdef class ProduceRequest:
    cdef readonly bytearray frame
    cdef readonly int version
    cdef readonly str transactional_id
    cdef readonly int acks
    cdef readonly list topics
    cdef object _view

    @cython.locals(found=TopicData, data=PartitionData)
    cpdef records(self, Py_ssize_t topic, Py_ssize_t partition)


cdef class _Walk(Walk):
    cdef int64_t name_bytes_left

    @cython.locals(left=int64_t)
    cdef ProduceRequest request(self, bytearray frame)

    @cython.locals(left=int64_t)
    cdef TopicData topic(self)

    @cython.locals(start=Py_ssize_t)
    cdef str topic_name(self)

    @cython.locals(index=int64_t, length=int64_t, entry_at=Py_ssize_t, records_at=Py_ssize_t, records_end=Py_ssize_t)
    cdef PartitionData partition(self)

    cdef int reject_count(self, int64_t count) except -1


@cython.locals(walk=_Walk)
cpdef ProduceRequest walk_produce_request(bytearray frame, int version, Py_ssize_t body_at, int64_t max_partitions)
