# The types that Cython compiles connection.py with. The file connection.py itself stays plain Python.
cimport cython

from sluicegate.protocol.framing cimport FrameReader


cdef class DirectOutlet:
    cdef int put(self, const char *data, Py_ssize_t size) except -1


cdef class Connection:
    cdef object _owner
    cdef FrameReader _reader
    cdef object _shared
    cdef object _describe_peer
    cdef object _loop
    cdef object _transport
    cdef object _write
    cdef object _is_closing
    cdef set _pause_reasons
    cdef bytes _backlog
    cdef bint _eof
    cdef bint _eof_reported
    cdef bint _into_frame
    cdef bint _taking
    cdef bint _paused
    cdef bint _closing
    cdef bint _resume_scheduled
    cdef object _close_timer
    cdef object _listener
    cdef readonly long long bytes_in
    cdef readonly Py_ssize_t last_read
    cdef readonly bint closed
    cdef readonly bint is_full
    cdef public object peer_info
    cdef public object address

    cpdef write(self, object data)

    @cython.locals(outlet=DirectOutlet)
    cdef int pass_on(self, const char *data, Py_ssize_t size) except -1

    cpdef get_buffer(self, object sizehint)

    cpdef buffer_updated(self, Py_ssize_t nbytes)

    @cython.locals(used=Py_ssize_t)
    cdef _receive(self, object data, Py_ssize_t end)

    cdef bint _lift(self, reason) except -1

    cdef _stop_reading(self)

    cpdef _continue(self)

    cdef _take_backlog(self)

    cdef _report_eof(self)
