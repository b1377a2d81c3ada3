# The types that Cython compiles node_addresses.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t

from sluicegate.protocol.walk cimport Walk

cdef int64_t _MAX_SHARE_ELEMENTS
cdef Py_ssize_t _INT16_BYTES
cdef Py_ssize_t _INT32_BYTES
cdef Py_ssize_t _INT64_BYTES
cdef Py_ssize_t _UUID_BYTES
cdef int _METADATA_THROTTLE_SINCE
cdef int _METADATA_RACK_SINCE
cdef int _METADATA_FLEXIBLE_SINCE
cdef int _ENDPOINT_TYPE_SINCE
cdef int _FENCED_SINCE
cdef int _COORDINATOR_MESSAGE_SINCE
cdef int _COORDINATOR_FLEXIBLE_SINCE
cdef int _COORDINATOR_LIST_SINCE
cdef int _ACKNOWLEDGE_LOCK_SINCE


cdef class NodeAddress:
    cdef readonly int64_t node_id
    cdef readonly str host
    cdef readonly int64_t port
    cdef readonly Py_ssize_t start
    cdef readonly Py_ssize_t node_at
    cdef readonly Py_ssize_t host_at
    cdef readonly Py_ssize_t behind_port
    cdef readonly Py_ssize_t end
    cdef readonly Py_ssize_t error_at


cdef class NodeList:
    cdef readonly Py_ssize_t count_at
    cdef readonly Py_ssize_t first_at
    cdef readonly list nodes


cdef class _Walk(Walk):
    @cython.locals(left=int64_t, count_at=Py_ssize_t, first_at=Py_ssize_t, node=NodeAddress)
    cdef NodeList nodes(self, bint has_rack, Py_ssize_t fixed_bytes_behind)

    cdef int address(self, NodeAddress node) except -1

    @cython.locals(node=NodeAddress)
    cdef NodeAddress coordinator(self)

    @cython.locals(node=NodeAddress)
    cdef NodeAddress only_coordinator(self)

    @cython.locals(left=int64_t, partitions_left=int64_t)
    cdef NodeList endpoints_behind_topics(self, bint is_fetch)

    @cython.locals(acquired_left=int64_t)
    cdef int skip_share_partition(self, bint is_fetch) except -1


@cython.locals(walk=_Walk)
cpdef NodeList brokers_in_metadata(data, int version, Py_ssize_t body_at)

@cython.locals(walk=_Walk)
cpdef NodeList brokers_in_cluster(data, int version, Py_ssize_t body_at)

@cython.locals(walk=_Walk, left=int64_t)
cpdef list coordinators(data, int version, Py_ssize_t body_at)

@cython.locals(walk=_Walk)
cpdef NodeList endpoints_of_share_fetch(data, int version, Py_ssize_t body_at)

@cython.locals(walk=_Walk)
cpdef NodeList endpoints_of_share_acknowledge(data, int version, Py_ssize_t body_at)

@cython.locals(walk=_Walk)
cpdef NodeList endpoints_in_tag(value)
