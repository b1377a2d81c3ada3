# The types that Cython compiles verdict.py with; the file itself stays plain Python.
cimport cython


cdef class Accepted:
    cdef readonly Py_ssize_t records
    cdef readonly object ahead_ms
