# The types that Cython compiles message_stream.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport uint8_t

from sluicegate.protocol.records.codecs.decompression_budget cimport Allowance
from sluicegate.protocol.records.message_set cimport Message, has_crc, size_of_message
from sluicegate.protocol.records.codecs.decompression cimport Pieces

cdef Py_ssize_t _OVERHEAD_BYTES
cdef Py_ssize_t _LEAST_BYTES


@cython.final
cdef class MessageStream:
    cdef readonly Message message
    cdef Pieces _pieces
    cdef Py_ssize_t _window_bytes
    cdef Allowance _allowance
    cdef object _rest
    cdef object _view
    cdef const uint8_t[::1] _data
    cdef Py_ssize_t _position
    cdef Py_ssize_t _end

    @cython.locals(size=Py_ssize_t)
    cpdef bint read_next(self) except -1

    cpdef bint has_crc(self) except -1

    @cython.locals(needed=Py_ssize_t)
    cdef bint _gather(self, Py_ssize_t size) except -1

    cdef _following(self)

    cdef _take(self, piece)
