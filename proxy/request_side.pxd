# The types that Cython compiles request_side.py with; the file itself stays plain Python.
cimport cython


cdef class ClientSide:
    cdef object _session
    cdef object _sasl
    cdef object _gate
    cdef object _on_gathered
    cdef Py_ssize_t _granted
    cdef Py_ssize_t _wanted
    cdef object _memory_wait
    cdef object _version
    cdef object _correlation_id
    cdef int _header_version
    cdef bytes _header_rest
    cdef object _header_client_id

    cpdef give_back_memory(self)

    cdef _by_treatment(self, api, version, correlation_id, size)

    cdef _gather(self, size)
