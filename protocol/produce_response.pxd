# The types that Cython compiles produce_response.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

cdef int _APPEND_TIME_SINCE
cdef int _LOG_START_SINCE
cdef int _RECORD_ERRORS_SINCE
cdef int _FLEXIBLE_SINCE
cdef int _NODE_ENDPOINTS_SINCE
cdef int _TOPIC_ID_SINCE
cdef Py_ssize_t _UUID_BYTES
cdef Py_ssize_t _INT16_BYTES
cdef Py_ssize_t _INT32_BYTES
cdef Py_ssize_t _INT64_BYTES
cdef int _MAX_VARINT_SHIFT
cdef int64_t _SIGN_16
cdef int64_t _SIGN_32
cdef int64_t _LOW_32
cdef int64_t _NO_OFFSET


cdef class _Walk:
    cdef const uint8_t[::1] data
    cdef int version
    cdef bint flexible
    cdef Py_ssize_t position
    cdef Py_ssize_t end
    cdef int64_t index
    cdef int64_t code
    cdef int64_t log_start_offset

    @cython.locals(topics_left=int64_t, entries_left=int64_t)
    cdef int skip_topics(self) except -1

    cdef bint has_node_endpoints(self) noexcept

    cdef int skip_topic_key(self) except -1

    @cython.locals(errors_left=int64_t)
    cdef int entry(self) except -1

    cdef int skip(self, int64_t size) except -1

    @cython.locals(value=int64_t, at=Py_ssize_t)
    cdef int64_t int16(self) except? -9

    @cython.locals(value=int64_t, at=Py_ssize_t)
    cdef int64_t int32(self) except? -9

    @cython.locals(high=int64_t, low=int64_t)
    cdef int64_t int64(self) except? -9

    @cython.locals(length=int64_t)
    cdef int skip_string(self) except -1

    cdef int64_t count(self) except? -9

    @cython.locals(length=int64_t)
    cdef int64_t length(self, int fixed_bytes) except? -9

    @cython.locals(value=uint64_t, byte=uint64_t, shift=int, at=Py_ssize_t)
    cdef int64_t unsigned_varint(self) except -9

    @cython.locals(left=int64_t)
    cdef int skip_tags(self) except -1


@cython.locals(walk=_Walk, topics_left=int64_t, entries_left=int64_t, key_at=Py_ssize_t, start=Py_ssize_t)
cpdef walk_produce_answer(frame, int version, Py_ssize_t body_at)

@cython.locals(walk=_Walk)
cpdef bint names_endpoints(frame, int version, Py_ssize_t body_at) except -1
