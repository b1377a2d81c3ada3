# The types that Cython compiles zstd_frames.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t, uint8_t

from sluicegate.protocol.records.codecs.decompression_budget cimport DecompressionBudget

cdef int64_t _FRAME_MAGIC
cdef int64_t _SKIPPABLE_MAGIC_WITHOUT_FIRST
cdef Py_ssize_t _LEAST_FRAME_BYTES
cdef Py_ssize_t _CHECKSUM_BYTES
cdef int _RLE_BLOCK
cdef Py_ssize_t _BLOCKS_BEFORE_GIVING_WAY


@cython.final
cdef class Frame:
    cdef readonly Py_ssize_t end
    cdef readonly Py_ssize_t window_bytes
    cdef readonly bint is_skippable


@cython.locals(frame=Frame, size=int64_t)
cpdef frame_at(const uint8_t[::1] data, Py_ssize_t position, DecompressionBudget budget)

@cython.locals(
    descriptor=int, is_single_segment=int, eighths=int64_t, size_code=int, size_bytes=Py_ssize_t, at=Py_ssize_t,
)
cdef Py_ssize_t _read_header(const uint8_t[::1] data, Py_ssize_t position, Frame frame) except -1

@cython.locals(blocks=Py_ssize_t, header=int64_t)
cdef Py_ssize_t _end_of_blocks(const uint8_t[::1] data, Py_ssize_t position, DecompressionBudget budget) except -1

cdef int64_t _uint24(const uint8_t[::1] data, Py_ssize_t at) noexcept
