# cython: language_level=3


cdef class LaneRoom:
    cdef readonly Py_ssize_t total_bytes
    cdef readonly Py_ssize_t held_bytes

    cdef bint take(self, Py_ssize_t size) noexcept

    cdef void give_back(self, Py_ssize_t size) noexcept
