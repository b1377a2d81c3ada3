# The types that Cython compiles request_side.py with; the file itself stays plain Python.
cimport cython

from sluicegate.proxy.session.memory cimport Gathering

cdef int _REQUESTS_A_TURN

cdef class ClientSide:
    cdef object _session
    cdef object _needs
    cdef object _sasl
    cdef object _gate
    cdef object _on_gathered
    cdef bint _has_begun
    cdef int _turn_left
    cdef Py_ssize_t _small_frame_bytes
    cdef Gathering _small
    cdef Gathering _large
    cdef object _version
    cdef object _correlation_id
    cdef int _header_version
    cdef bytes _header_rest
    cdef object _header_client_id

    cpdef give_back_memory(self)

    cdef _by_treatment(self, api, version, correlation_id, size)

    @cython.locals(gathering=Gathering)
    cpdef on_room(self, Py_ssize_t more, Py_ssize_t size)
