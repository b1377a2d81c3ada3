# The types that Cython compiles response_walks.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t

from sluicegate.protocol.walk cimport Walk

cdef int64_t _MAX_ELEMENTS
cdef int _FIXED
cdef int _STRING
cdef int _BYTES
cdef int _TAGS
cdef int _ARRAY
cdef int _NODES
cdef int _ADDRESS
cdef int _ERROR


cdef class NodeAddress:
    cdef readonly int64_t node_id
    cdef readonly str host
    cdef readonly int64_t port
    cdef readonly Py_ssize_t start
    cdef readonly Py_ssize_t node_at
    cdef readonly Py_ssize_t host_at
    cdef readonly Py_ssize_t port_end
    cdef readonly Py_ssize_t end
    cdef readonly Py_ssize_t error_at


cdef class NodeList:
    cdef readonly Py_ssize_t count_at
    cdef readonly Py_ssize_t first_at
    cdef readonly list nodes
    cdef readonly set codes


cdef class ResponseWalk(Walk):
    cdef readonly set codes
    cdef NodeAddress node
    cdef NodeList listed

    cdef NodeList nodes_of(self, tuple program)

    @cython.locals(step=int, size=int64_t, inner=tuple, left=int64_t)
    cpdef int run(self, tuple program) except -1

    @cython.locals(count=int64_t)
    cdef int64_t nullable_count(self) except -9

    @cython.locals(code=int64_t)
    cdef int error(self) except -1

    @cython.locals(left=int64_t, count_at=Py_ssize_t, node=NodeAddress)
    cdef int nodes(self, int64_t most, tuple inner) except -1

    cdef int address(self, NodeAddress node) except -1


@cython.locals(walk=ResponseWalk)
cpdef NodeList addresses_in(int api_key, int version, data, Py_ssize_t body_at)

@cython.locals(walk=ResponseWalk)
cpdef NodeList endpoints_in_tag(value)

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


cdef class _MetadataWalk(Walk):
    cdef set codes

    @cython.locals(left=int64_t)
    cdef list topics(self)

    @cython.locals(left=int64_t)
    cdef int skip_brokers(self) except -1

    @cython.locals(code=int, topic_id=bytes, name=str)
    cdef int topic(self, list found) except -1

    @cython.locals(left=int64_t)
    cdef int skip_partitions(self) except -1


@cython.locals(walk=_MetadataWalk)
cpdef tuple topics_in(frame, int version, Py_ssize_t body_at)
