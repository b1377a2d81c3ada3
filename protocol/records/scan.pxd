# The types that Cython compiles scan.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from sluicegate.protocol.records.codecs.decompression_budget cimport DecompressionBudget
from sluicegate.protocol.records.codecs.decompression cimport DecompressedStream

cdef int _NULL_KEY
cdef int _OUT_OF_WINDOW
cdef int _EVERY_RECORD
cdef Py_ssize_t _PAUSE_BYTES
cdef Py_ssize_t _CAREFUL_BYTES
cdef Py_ssize_t _BAD_BYTES
cdef uint64_t _U32
cdef uint64_t _U64
cdef uint64_t _SIGN_64
cdef Py_ssize_t _ROOM_BEFORE_KEY
cdef Py_ssize_t _ROOM_BEFORE_VALUE


@cython.final
cdef class Ambiguity:
    cdef readonly object why
    cdef readonly int64_t stated
    cdef readonly int64_t expected


@cython.final
cdef class BadRecords:
    cdef readonly Py_ssize_t count
    cdef readonly list kept
    cdef readonly object first_time

    @cython.locals(is_first_time=bint)
    cdef int note(
        self, Py_ssize_t keep, Py_ssize_t index, int reason, uint64_t delta, int64_t offset_delta, int64_t key_size,
        int64_t value_size,
    ) except -1


@cython.final
cdef class RehearsalCounter:
    cdef int64_t _before_max_ms
    cdef int64_t _after_max_ms
    cdef int64_t[::1] _befores
    cdef int64_t[::1] _afters
    cdef Py_ssize_t _before_count
    cdef Py_ssize_t _after_count
    cdef int64_t[::1] _counts
    cdef uint64_t _now_delta
    cdef readonly int64_t ahead_ms
    cdef readonly bint keeps_any

    @cython.locals(behind=int64_t, ahead=int64_t, i=Py_ssize_t)
    cpdef bint rejects(self, uint64_t delta) except -1


@cython.final
cdef class Cursor:
    cdef const uint8_t[::1] data
    cdef object source
    cdef Py_ssize_t position
    cdef Py_ssize_t end
    cdef bint failed
    cdef bint bad_varint
    cdef bint overflowed
    cdef bint padded
    cdef Py_ssize_t passed
    cdef DecompressedStream pieces
    cdef DecompressionBudget budget
    cdef Py_ssize_t pause_at

    cdef bint refill(self) except -1

    cdef int pause(self) except -1

    @cython.locals(value=uint64_t, shift=int, byte=uint64_t, half=int64_t)
    cdef inline int64_t varint(self)

    @cython.locals(value=uint64_t, shift=int, bits=uint64_t)
    cdef inline uint64_t varlong(self)

    cdef inline int skip(self, int64_t size) except -1


@cython.locals(
    taken=Py_ssize_t, at=Py_ssize_t, body=Py_ssize_t, byte=uint64_t, length=uint64_t, size=uint64_t, delta=uint64_t,
    ahead=uint64_t, shift=int, offset=uint64_t, expected=uint64_t,
)
cdef (Py_ssize_t, Py_ssize_t, uint64_t) _ordinary_run(
    const uint8_t[::1] data, Py_ssize_t position, Py_ssize_t end, Py_ssize_t most, bint framed, bint strictly,
    Py_ssize_t first, bint needs_keys, uint64_t earliest_delta, uint64_t window, uint64_t exempt_delta, uint64_t latest,
) noexcept


@cython.locals(
    cursor=Cursor, taken=Py_ssize_t, ordinary_window=uint64_t, latest=uint64_t, index=Py_ssize_t, record_length=int64_t, body=Py_ssize_t, delta=uint64_t,
    offset_delta=int64_t, key_size=int64_t, value_size=int64_t, header_count=int64_t, headers=int64_t, name_size=int64_t,
    ahead=uint64_t, reason=int, bad=BadRecords, is_left_over=bint, check_keys=bint, check_times=bint,
    take_all=bint, is_broken=bint, has_padded_length=bint, least_size=int64_t, size=int64_t, actual=Py_ssize_t,
)
cpdef tuple scan_records(
    const uint8_t[::1] data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count, bint framed, int look_for,
    uint64_t earliest_delta, uint64_t window, uint64_t exempt_delta, uint64_t overflow,
    DecompressedStream pieces, DecompressionBudget budget, Py_ssize_t keep, RehearsalCounter rehearsal=*,
    bint strictly=*,
)

cdef int _length_outcome(Cursor cursor, bint framed)

cdef int64_t _signed(uint64_t pattern) noexcept
