# The types that Cython compiles decompression_budget.py with; the file itself stays plain Python.
cimport cython

cdef Py_ssize_t _GIVE_WAY_BYTES
cdef Py_ssize_t _UNBOUNDED
cdef Py_ssize_t _LEAST_BYTES


@cython.final
cdef class DecompressionBudget:
    cdef readonly Py_ssize_t plain_bytes
    cdef public Py_ssize_t record_errors
    cdef readonly Py_ssize_t most_at_once
    cdef readonly Py_ssize_t most_held
    cdef readonly bint exhausted
    cdef object _give_way
    cdef readonly Py_ssize_t plain_left
    cdef readonly Py_ssize_t most_headers
    cdef public Py_ssize_t headers_left
    cdef Py_ssize_t _since

    cpdef int check(self, Py_ssize_t size) except -1

    cpdef int check_open(self) except -1

    cpdef int spend(self, Py_ssize_t size) except -1

    cpdef int spend_headers(self, Py_ssize_t count) except -1

    cpdef int check_at_once(self, Py_ssize_t size) except -1

    cpdef int check_held(self, Py_ssize_t size) except -1

    cpdef DecompressionBudget for_rereading(self)

    cpdef int worked(self, Py_ssize_t size) except -1


@cython.final
cdef class PayloadLimits:
    cdef readonly Py_ssize_t plain_bytes
    cdef readonly Py_ssize_t window_bytes
    cdef readonly DecompressionBudget budget
    cdef Py_ssize_t _left

    cpdef int check_block(self, Py_ssize_t size) except -1

    cpdef int spend(self, Py_ssize_t size) except -1

    cdef int _check(self, Py_ssize_t size) except -1
