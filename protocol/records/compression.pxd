# The types that Cython compiles compression.py with; the file itself stays plain Python.
cimport cython

from protocol.records.plain_buffer cimport PlainBuffer


cdef class Decompressor:
    cdef PlainBuffer _plain
    cdef object _zstd_context
    cdef dict _decoders


cdef class Decompressed:
    cdef readonly object data
    cdef readonly object failure
