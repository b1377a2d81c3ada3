# The types that Cython compiles topic_ids.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t

from sluicegate.protocol.walk cimport Walk

cdef int _BROKER_RACK_SINCE
cdef int _CONTROLLER_SINCE
cdef int _INTERNAL_SINCE
cdef int _CLUSTER_ID_SINCE
cdef int _THROTTLE_SINCE
cdef int _OFFLINE_REPLICAS_SINCE
cdef int _LEADER_EPOCH_SINCE
cdef int _OPERATIONS_SINCE
cdef int _FLEXIBLE_SINCE
cdef int _TOPIC_ID_SINCE
cdef Py_ssize_t _INT32_BYTES
cdef Py_ssize_t _UUID_BYTES
cdef Py_ssize_t _PARTITION_BYTES
cdef int64_t _MAX_ELEMENTS


cdef class _Walk(Walk):
    @cython.locals(left=int64_t)
    cdef list topics(self)

    @cython.locals(left=int64_t)
    cdef int skip_brokers(self) except -1

    @cython.locals(exists=bint, topic_id=bytes, name=str)
    cdef int topic(self, list found) except -1

    @cython.locals(left=int64_t)
    cdef int skip_partitions(self) except -1


@cython.locals(walk=_Walk)
cpdef list topics_told(frame, int version, Py_ssize_t body_at)
