# The types that Cython compiles compression.py with; the file itself stays plain Python.
cimport cython

from sluicegate.protocol.records.codecs.decompression_budget cimport Allowance
from sluicegate.protocol.records.codecs.chunks cimport Bounds, Pieces
from sluicegate.protocol.records.codecs.plain_buffer cimport PlainBuffer


@cython.final
cdef class Decompressor:
    cdef Py_ssize_t _most_piece_bytes
    cdef PlainBuffer _piece
    cdef PlainBuffer _whole
    cdef object _zstd_context

    cpdef Pieces open(self, codec, data, Bounds bounds, int magic=*)

    cpdef close(self)

    @cython.locals(pieces=Pieces, filled=Py_ssize_t)
    cpdef Decompressed decompress(self, codec, data, Py_ssize_t limit, int magic=*)

    cdef _decoder(self, codec, data, Bounds bounds, int magic)


cdef class Decompressed:
    cdef readonly object data
    cdef readonly object failure
    cdef readonly object oddity
