# The types that Cython compiles rewriting.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t, uint64_t

from sluicegate.protocol.records.codecs.decompression cimport DecompressedStream
from sluicegate.protocol.records.codecs.decompression_budget cimport DecompressionBudget
from sluicegate.protocol.records.scan cimport Cursor

cdef uint64_t _SIGN_64
cdef uint64_t _U64
cdef Py_ssize_t _RECORD_WORK
cdef Py_ssize_t _HEADER_WORK
cdef Py_ssize_t _NEW_HEADER_WORK
cdef Py_ssize_t _PIECE_BYTES


@cython.final
cdef class RecordChange:
    cdef readonly bytes value
    cdef readonly bytes headers
    cdef readonly bytes more
    cdef readonly int64_t more_count
    cdef readonly object time


@cython.final
cdef class RecordReader:
    cdef Cursor _cursor
    cdef Py_ssize_t _count
    cdef uint64_t _base
    cdef Py_ssize_t _window_bytes
    cdef DecompressionBudget _budget
    cdef tuple _watched
    cdef object _source
    cdef Py_ssize_t _body
    cdef Py_ssize_t _after_time
    cdef Py_ssize_t _value_from
    cdef Py_ssize_t _value_at
    cdef Py_ssize_t _headers_from
    cdef Py_ssize_t _headers_at
    cdef Py_ssize_t _last_at
    cdef Py_ssize_t _before_last_at
    cdef Py_ssize_t _end
    cdef readonly Py_ssize_t index
    cdef readonly int attributes
    cdef readonly bint is_padded
    cdef readonly int64_t timestamp
    cdef readonly int64_t key_size
    cdef readonly int64_t value_size
    cdef readonly int64_t header_count
    cdef readonly bint is_watched

    @cython.locals(cursor=Cursor, length=int64_t, end=Py_ssize_t, pieces=DecompressedStream)
    cpdef bint read_next(self) except -1

    @cython.locals(size=int64_t, left=int64_t)
    cdef int _read_within(self, Cursor cursor) except -1

    @cython.locals(size=int64_t, at=Py_ssize_t, prefix=bytes)
    cdef int _read_headers(self, Cursor cursor, int64_t left) except -1

    @cython.locals(cursor=Cursor, here=Py_ssize_t, found=bytearray)
    cdef bytearray _gathered(self, Py_ssize_t length)

    cpdef bytes value(self)

    cpdef tuple headers(self)

    cpdef tuple last_headers(self)

    @cython.locals(
        cursor=Cursor, left=int64_t, found=bytearray, copied=Py_ssize_t, at=Py_ssize_t, size=int64_t,
        name_at=Py_ssize_t, prefix=bytes, name=bytes,
    )
    cpdef bytes renamed(self, rename, int64_t without_last=*)

    @cython.locals(cursor=Cursor, found=list, size=int64_t, at=Py_ssize_t)
    cdef tuple _headers_after(self, Py_ssize_t position, int64_t left)


@cython.final
cdef class RecordRewriter:
    cdef object _output
    cdef bytearray _plain
    cdef bint _is_rebased
    cdef readonly int64_t base_timestamp
    cdef readonly int64_t latest

    @cython.locals(time=int64_t, is_restamped=bint, plain=bytearray)
    cpdef int write(self, RecordReader record, RecordChange change) except -1

    @cython.locals(
        plain=bytearray, delta=int64_t, kept_from=Py_ssize_t, length=int64_t, value=bytes, headers=bytes, more=int64_t,
    )
    cdef int _write_changed(self, RecordReader record, RecordChange change, int64_t time, bint is_restamped) except -1


@cython.locals(record=RecordReader, change=RecordChange, writer=RecordRewriter, first=Py_ssize_t)
cpdef RecordRewriter rewrite_records(opens, ask, writes)

@cython.locals(most=Py_ssize_t, i=Py_ssize_t)
cdef bint _begins(Cursor cursor, Py_ssize_t at, int64_t size, bytes prefix) noexcept

@cython.locals(left=uint64_t)
cdef int _put_varint(bytearray out, int64_t value) except -1

@cython.locals(left=uint64_t, size=Py_ssize_t)
cdef Py_ssize_t _size_of_varint(int64_t value) noexcept

cdef int64_t _signed(uint64_t pattern) noexcept
