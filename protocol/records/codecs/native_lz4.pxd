from libc.stdint cimport uint8_t

cdef Py_ssize_t ordinary_lz4(
    const uint8_t[::1] data, Py_ssize_t start, Py_ssize_t end, uint8_t *room, Py_ssize_t most
) noexcept
