# The types that Cython compiles contents.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t, uint64_t

from sluicegate.protocol.records.codecs.decompression cimport DecompressedStream
from sluicegate.protocol.records.codecs.decompression_budget cimport DecompressionBudget
from sluicegate.protocol.records.scan cimport Cursor

cdef Py_ssize_t _MOST_HEADERS
cdef uint64_t _SIGN_64
cdef uint64_t _U64
cdef Py_ssize_t _RECORD_WORK
cdef Py_ssize_t _HEADER_WORK
cdef Py_ssize_t _TAKEN_HEADER_WORK


@cython.final
cdef class RecordContents:
    cdef Cursor _cursor
    cdef Py_ssize_t _left
    cdef uint64_t _base
    cdef bint _wants_key
    cdef bint _wants_value
    cdef bint _wants_headers
    cdef frozenset _header_names
    cdef int64_t _longest_name
    cdef Py_ssize_t _window_bytes
    cdef int64_t _most_bytes
    cdef DecompressionBudget _budget
    cdef readonly Py_ssize_t index
    cdef readonly int64_t timestamp
    cdef readonly object key
    cdef readonly object value
    cdef readonly tuple headers
    cdef readonly int64_t key_size
    cdef readonly int64_t value_size
    cdef readonly int64_t header_count
    cdef readonly int64_t header_bytes

    @cython.locals(cursor=Cursor, size=int64_t, work=Py_ssize_t)
    cpdef bint read_next(self) except -1

    @cython.locals(
        cursor=Cursor, left=int64_t, found=list, names=frozenset, size=int64_t, is_wanted=bint, name=bytes,
    )
    cdef int _read_headers(self) except -1

    @cython.locals(wants_key=bint, wants_value=bint, wants_headers=bint)
    cpdef int skip_to(self, Py_ssize_t index) except -1

    @cython.locals(cursor=Cursor, at=Py_ssize_t, wanted=int64_t)
    cdef _taken(self, int64_t size)

    @cython.locals(cursor=Cursor, here=Py_ssize_t, found=bytearray)
    cdef _gathered(self, Py_ssize_t size)


@cython.final
cdef class TakenRecord:
    cdef readonly Py_ssize_t index
    cdef readonly int64_t timestamp
    cdef readonly object why
    cdef readonly bytes key
    cdef readonly bytes value
    cdef readonly list headers


@cython.final
cdef class TakenRecords:
    cdef readonly list records
    cdef readonly int64_t size


@cython.locals(
    cursor=Cursor, records=list, held=int64_t, index=Py_ssize_t, delta=uint64_t, key_size=int64_t, value_size=int64_t,
    left=int64_t, size=int64_t, headers=list,
)
cpdef take_records(
    data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count, int64_t base_timestamp, DecompressedStream pieces,
    DecompressionBudget budget, wanted, int64_t most_bytes, time_of_all=*,
)

cdef int64_t _checked(int64_t size, int64_t held, int64_t most_bytes) except -1

@cython.locals(at=Py_ssize_t)
cdef _bytes_of(Cursor cursor, int64_t size)

cdef int64_t _signed(uint64_t pattern) noexcept
