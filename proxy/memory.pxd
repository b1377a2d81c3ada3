# The types that Cython compiles memory.py with; the file itself stays plain Python.
cimport cython


cdef class GatherBudget:
    cdef Py_ssize_t _free
    cdef object _waiting

    cpdef bint take(self, Py_ssize_t size, when_free) except -1

    cpdef give_back(self, Py_ssize_t size)
