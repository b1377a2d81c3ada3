# The types that Cython compiles decompression.py with; the file itself stays plain Python.
cimport cython

from sluicegate.protocol.records.codecs.decompression_budget cimport DecompressionBudget, PayloadLimits


@cython.final
cdef class DecompressedStream:
    cdef readonly object failure
    cdef readonly object oddity
    cdef object _decoder
    cdef PayloadLimits _bounds
    cdef Py_ssize_t _most
    cdef object _rest

    cpdef more(self)

    cdef _decoded(self)


@cython.final
cdef class Decompressor:
    cdef Py_ssize_t _most_piece_bytes
    cdef object _piece
    cdef object _whole
    cdef object _zstd_context

    cpdef DecompressedStream open(self, codec, data, PayloadLimits bounds, int magic=*)

    cpdef close(self)

    @cython.locals(pieces=DecompressedStream, filled=Py_ssize_t)
    cpdef Decompressed decompress(self, codec, data, Py_ssize_t limit, int magic=*)

    cdef _decoder(self, codec, data, PayloadLimits bounds, int magic)


cdef class Decompressed:
    cdef readonly object data
    cdef readonly object failure
    cdef readonly object oddity
