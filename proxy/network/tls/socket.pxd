# The types that Cython compiles socket.py with. The file socket.py itself stays plain Python.
cimport cython


cdef class TlsSocket:
    cdef object _tls
    cdef object _incoming
    cdef object _outgoing
    cdef object _connection
    cdef object _encrypted
    cdef object _received
    cdef object _transport
    cdef object _failure
    cdef object _close_reason
    cdef bint _paused
    cdef bint _ended
    cdef bint _end_reported
    cdef bint _is_finished
    cdef bint _closing

    cpdef write(self, data)

    cpdef write_eof(self)

    cpdef resume_reading(self)

    cdef _decrypt_soon(self)

    cpdef _decrypt(self)

    @cython.locals(count=Py_ssize_t, size=Py_ssize_t, got=Py_ssize_t)
    cdef Py_ssize_t _read_into(self, room) except -1

    cdef bint _has_input(self) except -1

    cdef _report_end(self)

    cdef _discard_input(self)

    cdef _encrypt(self, left)

    cdef _send_encrypted(self)

    cdef _fail(self, error)
