# The types that Cython compiles produce_gate.py with; the file itself stays plain Python.
cimport cython

from sluicegate.protocol.produce_request cimport ProduceRequest, walk_produce_request
from sluicegate.protocol.produce_response cimport tail_with_endpoints


cdef class ProduceGate:
    cdef object _session
    cdef object _needs
    cdef object _waiting
    cdef object _finish
    cdef int _finish_version
    cdef object _job
    cdef Py_ssize_t _requests
    cdef Py_ssize_t _kept_bytes
    cdef dict _proven

    cdef _teach(self, ProduceRequest request)

    cdef _judged(self, ProduceRequest request, correlation_id, dispatch)

    cpdef _send(self, ProduceRequest request, correlation_id, dispatch)

    cpdef plain_finish(self, int version)

    cpdef forward(self, bytearray frame, exchange)
