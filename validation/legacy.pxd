# The types that Cython compiles legacy.py with; the file itself stays plain Python.
cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t

from sluicegate.protocol.records.allowance cimport Allowance
from sluicegate.protocol.records.compression cimport Decompressor
from sluicegate.protocol.records.message_set cimport Message, has_crc
from sluicegate.protocol.records.message_stream cimport MessageStream
from sluicegate.protocol.records.pieces cimport Bounds, Pieces
from sluicegate.protocol.records.record_batch cimport magic_at, next_batch_end
from sluicegate.validation.timestamps cimport TimeWindow

cdef Py_ssize_t _MESSAGE_WORK
cdef int _MAGIC_2
cdef int64_t _NO_TIMESTAMP
cdef uint64_t _U64
cdef int _LAST_CODEC
cdef int _ZSTD


cpdef check_stored_message(records, const uint8_t[::1] data, Py_ssize_t start, Py_ssize_t end, policy)


@cython.final
cdef class _Found:
    cdef Py_ssize_t keep
    cdef Py_ssize_t count
    cdef list kept
    cdef object first_time
    cdef object fatal

    @cython.locals(is_first_time=bint)
    cdef int note(self, Py_ssize_t index, int flaw, Message message, int64_t timestamp) except -1


@cython.final
cdef class _MessageSetJudge:
    cdef object _errors
    cdef object _limits
    cdef Decompressor _decompressor
    cdef Allowance _allowance
    cdef object _policy
    cdef bint _needs_keys
    cdef bint _has_window
    cdef TimeWindow _window
    cdef uint64_t _earliest
    cdef uint64_t _width
    cdef uint64_t _overflow
    cdef int64_t _latest

    @cython.locals(
        message=Message, first=Message, data="const uint8_t[::1]", start=Py_ssize_t, count=Py_ssize_t, flaw=int,
        is_compressed=bint, mixes_magics=bint,
    )
    cdef judge(self, records)

    @cython.locals(codec_id=int, bounds=Bounds, pieces=Pieces)
    cdef _judge_wrapper(self, Message wrapper, records)

    @cython.locals(stream=MessageStream, message=Message, found=_Found, index=Py_ssize_t, last_offset=int64_t)
    cdef _judge_inner(self, Message wrapper, Pieces pieces)

    @cython.locals(message=Message, timestamp=int64_t, flaw=int)
    cdef int _look_at(self, MessageStream stream, Message wrapper, Py_ssize_t index, _Found found) except -1

    @cython.locals(ahead=uint64_t)
    cdef int _flaw_of(self, Message message, int64_t timestamp, Message outer) except -1

    cdef _ahead_ms(self)


cdef _base_offset(Message wrapper, int64_t last_offset)
