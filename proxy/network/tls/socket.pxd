# The types that Cython compiles tls_socket.py with; the file itself stays plain Python.
cimport cython


cdef class TlsSocket:
    cdef object _tls
    cdef object _incoming
    cdef object _outgoing
    cdef object _connection
    cdef object _sealed
    cdef object _came
    cdef object _transport
    cdef object _failure
    cdef object _lost_by
    cdef bint _paused
    cdef bint _ended
    cdef bint _end_told
    cdef bint _no_more
    cdef bint _closing

    cpdef write(self, data)

    cpdef write_eof(self)

    cpdef resume_reading(self)

    cdef _open_soon(self)

    cpdef _open(self)

    @cython.locals(count=Py_ssize_t, size=Py_ssize_t, got=Py_ssize_t)
    cdef Py_ssize_t _read_into(self, room) except -1

    cdef bint _has_more(self) except -1

    cdef _is_empty(self)

    cdef _throw_away(self)

    cdef _seal(self, left)

    cdef _send_sealed(self)

    cdef _fail(self, error)
