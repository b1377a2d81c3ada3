# The types that Cython compiles before_login.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t

from sluicegate.protocol.walk cimport Walk


cdef class _Walk(Walk):
    @cython.locals(size=int64_t)
    cdef bytes required_bytes(self)


@cython.locals(walk=Walk)
cpdef software_in(frame, int version, Py_ssize_t body_at)

@cython.locals(walk=Walk)
cpdef str mechanism_in(frame, int version, Py_ssize_t body_at)

@cython.locals(walk=_Walk)
cpdef bytes token_in(frame, int version, Py_ssize_t body_at)

@cython.locals(walk=_Walk)
cpdef login_answer_in(frame, int version, Py_ssize_t body_at)
