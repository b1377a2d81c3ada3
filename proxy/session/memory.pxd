# The types that Cython compiles memory.py with; the file itself stays plain Python.
cimport cython


cdef class Share:
    cdef Py_ssize_t _free
    cdef object _call_soon
    cdef object _waiting
    cdef Gathering _beyond
    cdef bint _waking

    cpdef bint take(self, Gathering who, Py_ssize_t size) except -1

    cpdef give_back(self, Gathering who, Py_ssize_t size)

    cdef _wake(self)

    @cython.locals(first=Gathering)
    cpdef _wake_some(self)


cdef class Gathering:
    cdef Share _share
    cdef object _when_granted
    cdef readonly Py_ssize_t held
    cdef readonly Py_ssize_t wanted

    cpdef bint want(self, Py_ssize_t more) except -1

    cpdef granted(self)

    @cython.locals(held=Py_ssize_t)
    cpdef settle(self)

    cpdef stop_waiting(self)

    cpdef leave(self)
