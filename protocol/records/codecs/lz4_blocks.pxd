# The types that Cython compiles lz4_blocks.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef Py_ssize_t _FLAGS_AT
cdef Py_ssize_t _DESCRIPTOR_AT
cdef Py_ssize_t _CONTENT_SIZE_BYTES
cdef Py_ssize_t _SIZE_AT
cdef Py_ssize_t _CHECKSUM_BYTES
cdef Py_ssize_t _SIZE_BYTES
cdef uint32_t _SIZE_MASK
cdef uint32_t _MAGIC
cdef uint32_t _PRIME_1
cdef uint32_t _PRIME_2
cdef uint32_t _PRIME_3
cdef uint32_t _PRIME_4
cdef uint32_t _PRIME_5
cdef uint32_t _U32
cdef Py_ssize_t _HEAD_BYTES
cdef int _KNOWN_FLAGS
cdef int _VERSION_1_INDEPENDENT_BLOCKS
cdef int _SMALLEST_BLOCK_CODE
cdef int _BLOCK_CHECKSUM
cdef int _CONTENT_SIZE
cdef int _CONTENT_CHECKSUM


@cython.final
cdef class Lz4Blocks:
    cdef object _data
    cdef const uint8_t[::1] _bytes
    cdef Py_ssize_t _position
    cdef Py_ssize_t _end
    cdef object _buffer
    cdef object _room
    cdef object _checked
    cdef int _flags
    cdef Py_ssize_t _block_bytes
    cdef uint64_t _content_bytes
    cdef uint64_t _filled

    @cython.locals(data="const uint8_t[::1]", flags=int, descriptor=int, code=int, end=Py_ssize_t)
    cdef _begin(self, int magic)

    @cython.locals(data="const uint8_t[::1]")
    cdef uint32_t _uint32(self, Py_ssize_t at) noexcept

    cdef _decompressed(self, block)


@cython.locals(value=uint32_t, four=uint32_t, at=Py_ssize_t)
cdef uint32_t _xxh32(const uint8_t[::1] data, Py_ssize_t start, Py_ssize_t end) noexcept
