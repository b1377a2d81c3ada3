# The types that Cython compiles record_batch.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t, uint8_t

cdef Py_ssize_t _SIZE_AT
cdef Py_ssize_t _MAGIC_AT
cdef Py_ssize_t _CRC_COVERS_FROM
cdef int64_t _MAX_LENGTH
cdef int64_t _SIGN_16
cdef int64_t _SIGN_32
cdef int64_t _LOW_32


cdef class RecordBatch:
    cdef readonly Py_ssize_t start
    cdef readonly Py_ssize_t end
    cdef readonly int64_t base_offset
    cdef readonly int64_t batch_length
    cdef readonly int64_t partition_leader_epoch
    cdef readonly int magic
    cdef readonly int64_t crc
    cdef readonly int attributes
    cdef readonly int64_t last_offset_delta
    cdef readonly int64_t base_timestamp
    cdef readonly int64_t max_timestamp
    cdef readonly int64_t producer_id
    cdef readonly int producer_epoch
    cdef readonly int64_t base_sequence
    cdef readonly int64_t record_count

    cdef _read(self, const uint8_t[::1] data, Py_ssize_t at)


@cython.locals(batch=RecordBatch)
cpdef RecordBatch read_header(const uint8_t[::1] data, Py_ssize_t start, Py_ssize_t end)

cpdef bint has_valid_crc(data, RecordBatch batch) except -1

@cython.locals(left=Py_ssize_t, length=int64_t)
cpdef next_batch_end(const uint8_t[::1] data, Py_ssize_t start)

cpdef bint opens_transactional(const uint8_t[::1] data) except -1

@cython.locals(value=int64_t)
cdef int64_t _int16(const uint8_t[::1] data, Py_ssize_t at) noexcept

@cython.locals(value=int64_t)
cpdef int64_t int32_at(const uint8_t[::1] data, Py_ssize_t at) noexcept

@cython.locals(high=int64_t, low=int64_t)
cpdef int64_t int64_at(const uint8_t[::1] data, Py_ssize_t at) noexcept

cpdef int magic_at(const uint8_t[::1] data, Py_ssize_t start) noexcept

cpdef int attributes_low_byte(const uint8_t[::1] data, Py_ssize_t start) noexcept
