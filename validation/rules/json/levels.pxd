# The types that Cython compiles levels.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t

cdef int _SAME
cdef int _EVERYWHERE
cdef int _ITEMS
cdef double _ENDLESS
cdef int _PARTS


@cython.final
cdef class LevelCosts:
    cdef double[::1] _own
    cdef double[::1] _members
    cdef double[::1] _inside
    cdef double[::1] _error
    cdef double[::1] _error_inside
    cdef int64_t[::1] _edges
    cdef int64_t[::1] _begins
    cdef int64_t[::1] _order
    cdef bytes _repeats
    cdef bytes _collects
    cdef int64_t _size
    cdef list _held
    cdef double[::1] _validated
    cdef double[::1] _before
    cdef double[::1] _marked
    cdef double[::1] _errors
    cdef double[::1] _errors_before
    cdef bint _is_odd
    cdef int64_t _depth

    @cython.locals(at=int64_t)
    cpdef object next(self)

    @cython.locals(i=int64_t)
    cdef void _begin(self) noexcept

    @cython.locals(part=int64_t)
    cdef void _add(self, int64_t at) noexcept

    @cython.locals(
        same=double, marks=double, below=double, of_property=double, of_item=double, error_of_property=double,
        error_of_item=double, edge=int64_t, end=int64_t, kind=int64_t, stop=int64_t, cost=double, mark=double,
        error=double, child=int64_t, place=int64_t, total=double
    )
    cdef void _add_part(self, int64_t at, int64_t part) noexcept
