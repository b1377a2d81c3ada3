# The types that Cython compiles walk.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t, uint64_t

cdef int64_t _LONGEST_STRING
cdef Py_ssize_t _INT16_BYTES
cdef Py_ssize_t _INT32_BYTES
cdef int _MAX_VARINT_SHIFT
cdef int64_t _SIGN_16
cdef int64_t _SIGN_32
cdef int64_t _LOW_32


cdef class Walk:
    cdef object source
    cdef const unsigned char* data
    cdef int version
    cdef bint flexible
    cdef readonly Py_ssize_t position
    cdef Py_ssize_t end
    cdef int64_t elements_left
    cdef int64_t tags_left

    cpdef int begin(
        self, data, int version, bint flexible, Py_ssize_t position, int64_t max_elements, int64_t max_tags
    ) except -1

    cpdef int skip(self, int64_t size) except -1

    @cython.locals(value=int64_t, at=Py_ssize_t)
    cpdef int64_t int16(self) except? -9

    @cython.locals(value=int64_t, at=Py_ssize_t)
    cdef int64_t int32(self) except? -9

    @cython.locals(high=int64_t, low=int64_t)
    cdef int64_t int64(self) except? -9

    @cython.locals(value=uint64_t, byte=uint64_t, shift=int, at=Py_ssize_t)
    cdef int64_t unsigned_varint(self) except -9

    @cython.locals(length=int64_t)
    cpdef int64_t length(self, int fixed_bytes) except -9

    @cython.locals(count=int64_t)
    cdef int64_t count(self) except -9

    cdef int reject_count(self, int64_t count) except -1

    @cython.locals(length=int64_t, start=Py_ssize_t)
    cpdef str string(self)

    cpdef str required_string(self)

    @cython.locals(start=Py_ssize_t)
    cpdef bytes bytes_of(self, int64_t size)

    @cython.locals(length=int64_t)
    cdef int skip_string(self) except -1

    @cython.locals(length=int64_t)
    cdef int skip_bytes(self) except -1

    @cython.locals(length=int64_t)
    cdef int skip_int32s(self) except -1

    @cython.locals(count=int64_t)
    cdef int64_t tag_count(self) except -9

    @cython.locals(left=int64_t)
    cpdef int skip_tags(self) except -1

    cpdef int expect_end(self) except -1


@cython.locals(walk=Walk, left=int64_t, size=int64_t, start=Py_ssize_t, value_at=Py_ssize_t)
cpdef list tagged_fields(data, Py_ssize_t position)
