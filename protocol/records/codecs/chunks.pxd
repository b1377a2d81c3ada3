# The types that Cython compiles pieces.py with; the file itself stays plain Python.
cimport cython

from sluicegate.protocol.records.codecs.decompression_budget cimport Allowance

cdef Py_ssize_t _LEAST_BYTES


@cython.final
cdef class Bounds:
    cdef readonly Py_ssize_t plain_bytes
    cdef readonly Py_ssize_t window_bytes
    cdef readonly Allowance allowance
    cdef Py_ssize_t _left

    cpdef int check_block(self, Py_ssize_t size) except -1

    cpdef int spend(self, Py_ssize_t size) except -1

    cdef int _check(self, Py_ssize_t size) except -1


@cython.final
cdef class Pieces:
    cdef readonly object failure
    cdef readonly object oddity
    cdef object _decoder
    cdef Bounds _bounds
    cdef Py_ssize_t _most
    cdef object _rest

    cpdef more(self)

    cdef _decoded(self)
