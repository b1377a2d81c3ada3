# The types that Cython compiles plain_buffer.py with; the file itself stays plain Python.
cimport cython

cdef Py_ssize_t _KEPT_BYTES


@cython.final
cdef class PlainBuffer:
    cdef object _view

    cpdef room(self, Py_ssize_t size, Py_ssize_t filled=*)

    cpdef give_back(self)
