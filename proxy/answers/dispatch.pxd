# The types that Cython compiles dispatch.py with; the file itself stays plain Python.
cimport cython


@cython.final
cdef class Dispatch:
    cdef readonly object judged
    cdef readonly object partly
    cdef readonly list parts
    cdef public object dead_letters
