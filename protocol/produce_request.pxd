# The types that Cython compiles produce_request.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t, uint64_t

cdef Py_ssize_t _UUID_BYTES
cdef Py_ssize_t _INT16_BYTES
cdef Py_ssize_t _INT32_BYTES
cdef int _MAX_VARINT_SHIFT
cdef int64_t _SIGN_16
cdef int64_t _SIGN_32


cdef class PartitionData:
    cdef readonly int64_t index
    cdef readonly Py_ssize_t entry_at
    cdef readonly Py_ssize_t records_at
    cdef readonly Py_ssize_t records_end


cdef class TopicData:
    cdef readonly str name
    cdef readonly bytes topic_id
    cdef readonly list partitions


cdef class ProduceRequest:
    cdef readonly bytearray frame
    cdef readonly int version
    cdef readonly str transactional_id
    cdef readonly int acks
    cdef readonly list topics
    cdef object _view

    @cython.locals(found=TopicData, data=PartitionData)
    cpdef records(self, Py_ssize_t topic, Py_ssize_t partition)


cdef class _Walk:
    cdef bytearray frame
    cdef int version
    cdef bint flexible
    cdef Py_ssize_t position
    cdef Py_ssize_t end

    @cython.locals(left=int64_t)
    cdef ProduceRequest request(self)

    @cython.locals(left=int64_t)
    cdef TopicData topic(self)

    @cython.locals(index=int64_t, length=int64_t, entry_at=Py_ssize_t, records_at=Py_ssize_t, records_end=Py_ssize_t)
    cdef PartitionData partition(self)

    cdef int need(self, Py_ssize_t size) except -1

    @cython.locals(value=int64_t)
    cdef int64_t int16(self) except? -9

    @cython.locals(value=int64_t, at=Py_ssize_t)
    cdef int64_t int32(self) except? -9

    @cython.locals(value=uint64_t, byte=uint64_t, shift=int)
    cdef int64_t unsigned_varint(self) except -9

    @cython.locals(length=int64_t)
    cdef int64_t length(self, int fixed_bytes) except -9

    @cython.locals(count=int64_t)
    cdef int64_t array_count(self) except -9

    @cython.locals(length=int64_t, start=Py_ssize_t)
    cdef str string(self, bint nullable)

    @cython.locals(left=int64_t, size=int64_t)
    cdef int skip_tags(self) except -1


cpdef ProduceRequest walk_produce_request(bytearray frame, int version, Py_ssize_t body_at)
