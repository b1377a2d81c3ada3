# The types that Cython compiles produce_response.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t

from sluicegate.protocol.walk cimport Walk

cdef int APPEND_TIME_SINCE
cdef int LOG_START_SINCE
cdef int RECORD_ERRORS_SINCE
cdef int FLEXIBLE_SINCE
cdef int NODE_ENDPOINTS_SINCE
cdef int TOPIC_ID_SINCE
cdef Py_ssize_t _UUID_BYTES
cdef Py_ssize_t _INT32_BYTES
cdef Py_ssize_t _INT64_BYTES
cdef int64_t _MAX_ELEMENTS
cdef int64_t _NO_OFFSET


cdef class _Walk(Walk):
    cdef int64_t index
    cdef int64_t code
    cdef int64_t log_start_offset

    @cython.locals(topics_left=int64_t, entries_left=int64_t)
    cdef int skip_topics(self) except -1

    cdef bint has_node_endpoints(self) noexcept

    cdef topic_key(self)

    cdef int skip_topic_key(self) except -1

    @cython.locals(errors_left=int64_t)
    cdef int entry(self) except -1


@cython.locals(walk=_Walk, topics_left=int64_t, entries_left=int64_t, start=Py_ssize_t)
cpdef walk_produce_response(frame, int version, Py_ssize_t body_at, int64_t max_entries)

@cython.locals(walk=_Walk)
cpdef Py_ssize_t tail_at(frame, int version, Py_ssize_t body_at) except -2

@cython.locals(walk=_Walk)
cpdef Py_ssize_t tail_with_endpoints(frame, int version, Py_ssize_t body_at) except -2

@cython.locals(walk=_Walk)
cdef _Walk _after_topics(frame, int version, Py_ssize_t body_at)
