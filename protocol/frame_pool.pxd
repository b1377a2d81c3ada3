# The types that Cython compiles frame_pool.py with; the file itself stays plain Python.
cimport cython


cdef class FramePool:
    cdef object _later
    cdef dict _kept
    cdef Py_ssize_t _kept_bytes

    @cython.locals(buffer=bytearray)
    cpdef bytearray take(self, Py_ssize_t size, Py_ssize_t at_hand)

    @cython.locals(size=Py_ssize_t)
    cpdef give_back(self, bytearray buffer)
