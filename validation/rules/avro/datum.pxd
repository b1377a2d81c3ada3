# The types that Cython compiles datum.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t, uint64_t

from sluicegate.validation.rules.strict_utf8 cimport is_text

cdef int _NULL
cdef int _BOOLEAN
cdef int _INT
cdef int _LONG
cdef int _BYTES
cdef int _STRING
cdef int _SIZED
cdef int _ENUM
cdef int _ARRAY
cdef int _MAP
cdef int _UNION
cdef int _RECORD
cdef int _ENDS_EARLY
cdef int _LEFT_OVER
cdef int _TOO_DEEP
cdef int _BAD_VARINT
cdef int _NO_BOOLEAN
cdef int _NO_INT
cdef int _BAD_LENGTH
cdef int _NOT_UTF8
cdef int _NO_SYMBOL
cdef int _NO_BRANCH
cdef int _BAD_COUNT
cdef int _BLOCK_SIZE
cdef int _DEEPEST
cdef int _LAST_SHIFT
cdef int64_t _MOST_EMPTY
cdef int64_t _MOST_EMPTY_BUILT
cdef int64_t _INT_LEAST
cdef int64_t _INT_MOST


@cython.final
cdef class Datum:
    cdef object held_plan
    cdef object held_data
    cdef const int64_t[::1] plan
    cdef const unsigned char* data
    cdef readonly int64_t position
    cdef int64_t end
    cdef readonly int why
    cdef readonly int64_t type_at

    cdef bint is_whole(self, int64_t root) noexcept

    @cython.locals(kind=int64_t, number=int64_t, place=int64_t, last=int64_t)
    cdef bint value(self, int64_t at, int depth) noexcept

    @cython.locals(
        items=int64_t, is_empty=bint, empties=int64_t, count=int64_t, size=int64_t, block_end=int64_t
    )
    cdef bint blocks(self, int64_t at, bint is_map, int depth) noexcept

    @cython.locals(kind=int64_t, number=int64_t, place=int64_t, begin=int64_t, end=int64_t, found=dict, text=str)
    cdef object built(self, int64_t at, int depth, object details)

    @cython.locals(
        items=int64_t, is_map=bint, is_empty=bint, count=int64_t, begin=int64_t, end=int64_t, array_items=list,
        entries=dict
    )
    cdef object built_blocks(self, int64_t at, int depth, object details)

    @cython.locals(size=int64_t)
    cdef bint text(self, int64_t at, bint is_string) noexcept

    cdef bint skip(self, int64_t at, int64_t size) noexcept

    @cython.locals(value=uint64_t, byte=uint64_t, half=int64_t, shift=int)
    cdef int64_t varint(self, int64_t at) noexcept

    cdef bint fail(self, int64_t at, int why) noexcept


@cython.locals(datum=Datum)
cpdef tuple value_in(plan, int64_t root, bytes data, details)

@cython.locals(datum=Datum)
cpdef object read_whole(plan, int64_t root, bytes data)
