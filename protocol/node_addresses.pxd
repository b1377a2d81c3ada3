# The types that Cython compiles node_addresses.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t

from sluicegate.protocol.walk cimport Walk

cdef int64_t _MAX_ELEMENTS
cdef Py_ssize_t _INT16_BYTES
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
    cdef readonly Py_ssize_t behind_port
    cdef readonly Py_ssize_t end
    cdef readonly Py_ssize_t error_at


cdef class NodeList:
    cdef readonly Py_ssize_t count_at
    cdef readonly Py_ssize_t first_at
    cdef readonly list nodes


cdef class _Walk(Walk):
    cdef NodeAddress node
    cdef NodeList listed

    cdef NodeList found(self, tuple program)

    @cython.locals(step=int, size=int64_t, inner=tuple, left=int64_t)
    cdef int run(self, tuple program) except -1

    @cython.locals(left=int64_t, count_at=Py_ssize_t, node=NodeAddress)
    cdef int nodes(self, int64_t most, tuple inner) except -1

    cdef int address(self, NodeAddress node) except -1


@cython.locals(walk=_Walk)
cpdef NodeList addresses_in(int api_key, int version, data, Py_ssize_t body_at)

@cython.locals(walk=_Walk)
cpdef NodeList endpoints_in_tag(value)
