# The types that Cython compiles text.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from sluicegate.validation.rules.strict_utf8 cimport behind_character

cdef int64_t _WELL_FORMED
cdef int _FAULT_BITS
cdef int _VALUE
cdef int _VALUE_OR_END
cdef int _KEY_OR_END
cdef int _KEY
cdef int _COLON
cdef int _BEHIND_VALUE
cdef int _EMPTY
cdef int _ENDS_EARLY
cdef int _NO_VALUE
cdef int _NO_KEY
cdef int _NO_COLON
cdef int _NO_COMMA
cdef int _LEFT_OVER
cdef int _TOO_DEEP
cdef int _CONTROL
cdef int _BAD_ESCAPE
cdef int _NOT_UTF8
cdef int _BAD_NUMBER
cdef int _BYTE_ORDER_MARK
cdef int _WORD_BITS
cdef int _DIGITS


@cython.locals(plain=bytes)
cpdef int64_t fault_in(bytes text, int max_depth) except -2

@cython.locals(at=int64_t, state=int, depth=int, objects=uint64_t, outer=list, byte=uint8_t)
cdef int64_t _first_fault(
    const unsigned char* data, int64_t end, const unsigned char* plain, int max_depth
) except -2

@cython.locals(byte=uint8_t, begin=int64_t)
cdef int64_t _behind_string(
    const unsigned char* data, int64_t at, int64_t end, const unsigned char* plain
) noexcept

@cython.locals(byte=uint8_t, digit=uint8_t, place=int64_t)
cdef int64_t _behind_escape(const unsigned char* data, int64_t at, int64_t end) noexcept

@cython.locals(begin=int64_t, digits=int64_t)
cdef int64_t _behind_number(const unsigned char* data, int64_t at, int64_t end) noexcept

cdef int64_t _behind_digits(const unsigned char* data, int64_t at, int64_t end) noexcept

@cython.locals(first=uint8_t, word=bytes, size=int, place=int64_t)
cdef int64_t _behind_word(const unsigned char* data, int64_t at, int64_t end) noexcept

@cython.locals(plain=bytes, dull=bytes)
cpdef bint is_unusual(bytes text) except -1

@cython.locals(at=int64_t)
cdef int64_t _has_unusual(
    const unsigned char* data, int64_t end, const unsigned char* plain, const unsigned char* dull
) noexcept

@cython.locals(half=int)
cdef int64_t _behind_pairs(
    const unsigned char* data, int64_t at, int64_t end, const unsigned char* plain
) noexcept

@cython.locals(digit=uint8_t)
cdef int _half_at(const unsigned char* data, int64_t at, int64_t end) noexcept

@cython.locals(is_negative=bint, begin=int64_t)
cdef int64_t _behind_short_number(const unsigned char* data, int64_t at, int64_t end) noexcept

@cython.locals(least=bytes, place=int64_t)
cdef bint _is_beyond(const unsigned char* data, int64_t at) noexcept
