# The types that Cython compiles plain_buffer.py with; the file itself stays plain Python.
cimport cython


cdef class PlainBuffer:
    cdef object _buffer
    cdef object _view
    cdef Py_ssize_t _limit
    cdef readonly Py_ssize_t filled

    cpdef begin(self, Py_ssize_t limit)

    cpdef room(self, Py_ssize_t size)

    cpdef Py_ssize_t step(self, Py_ssize_t most)

    cpdef wrote(self, Py_ssize_t size)

    cpdef add(self, piece)

    cpdef check_claim(self, Py_ssize_t size)

    cpdef contents(self)

    cdef _replace(self, buffer)
