# The types that Cython compiles message_set.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t, uint8_t

from sluicegate.protocol.records.codecs.decompression cimport DecompressedStream
from sluicegate.protocol.records.codecs.decompression_budget cimport DecompressionBudget

cdef Py_ssize_t _OVERHEAD_BYTES
cdef Py_ssize_t _MIN_MESSAGE_BYTES
cdef int64_t _NO_TIMESTAMP
cdef Py_ssize_t _SIZE_AT
cdef Py_ssize_t _CRC_AT
cdef Py_ssize_t _MAGIC_AT
cdef Py_ssize_t _ATTRIBUTES_AT
cdef Py_ssize_t _BEHIND_ATTRIBUTES
cdef Py_ssize_t _TIMESTAMP_BYTES
cdef Py_ssize_t _SIZE_BYTES
cdef Py_ssize_t _LEAST_BYTES
cdef int _CODEC_MASK
cdef int _LOG_APPEND_TIME
cdef int64_t _SIGN_32
cdef int64_t _LOW_32


@cython.final
cdef class Message:
    cdef readonly Py_ssize_t start
    cdef readonly Py_ssize_t end
    cdef readonly int64_t offset
    cdef readonly int64_t crc
    cdef readonly int magic
    cdef readonly int attributes
    cdef readonly int codec_id
    cdef readonly bint is_log_append_time
    cdef readonly int64_t timestamp
    cdef readonly int64_t key_size
    cdef readonly Py_ssize_t value_at
    cdef readonly int64_t value_size

    @cython.locals(position=Py_ssize_t)
    cpdef int read(self, const uint8_t[::1] data, Py_ssize_t start, Py_ssize_t end) except -1

    @cython.locals(made=Message)
    cpdef Message copy(self)


@cython.locals(computed=int64_t)
cpdef bint has_crc(view, const uint8_t[::1] data, Py_ssize_t start, Py_ssize_t end) except -1

cpdef int64_t size_of_message(const uint8_t[::1] data, Py_ssize_t start) except -1

@cython.final
cdef class MessageStream:
    cdef readonly Message message
    cdef DecompressedStream _pieces
    cdef Py_ssize_t _window_bytes
    cdef DecompressionBudget _budget
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


@cython.locals(size=int64_t)
cdef int64_t _size_at(const uint8_t[::1] data, Py_ssize_t position, Py_ssize_t end) except -2

@cython.locals(value=int64_t)
cdef int64_t _int32_at(const uint8_t[::1] data, Py_ssize_t at) noexcept

@cython.locals(high=int64_t, low=int64_t)
cdef int64_t _int64_at(const uint8_t[::1] data, Py_ssize_t at) noexcept
