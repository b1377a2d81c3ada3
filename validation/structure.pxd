# The types that Cython compiles structure.py with; the file itself stays plain Python.
cimport cython

from libc.stdint cimport uint8_t

from sluicegate.protocol.records.record_batch cimport (
    RecordBatch, attributes_low_byte, has_valid_crc, int64_at, magic_at, next_batch_end, read_header,
)

cdef int ZSTD_SINCE
cdef int _LAST_CODEC


@cython.locals(codec_id=int)
cpdef check_request_rules(const uint8_t[::1] records, first_end, int version)

@cython.locals(batch=RecordBatch)
cpdef check_stored_form(records, const uint8_t[::1] data, Py_ssize_t start, Py_ssize_t end, policy)

cpdef check_header(RecordBatch batch)
