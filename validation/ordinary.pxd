# The declarations that the fast path in proxy/ calls natively.
from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t

from sluicegate.protocol.records.codecs.decompression_budget cimport DecompressionBudget
from sluicegate.protocol.records.codecs.decompression cimport Decompressor, DecompressedStream
from sluicegate.validation.rules.native.contents cimport OrdinaryContents


cdef struct Topic:
    uint32_t hash
    Py_ssize_t size  # 0: a free slot
    char *key  # the topic's name or id
    bint is_id
    bint is_checked
    bint is_timed
    bint is_compacted
    bint is_strict
    bint has_rules
    uint64_t before_max_ms
    uint64_t after_max_ms
    Py_ssize_t most_bytes


cdef struct Share:
    # Numbers of the current request, up to and including this topic.
    Topic *topic
    Py_ssize_t partitions
    Py_ssize_t records
    Py_ssize_t bytes


cdef class BatchTally:
    cdef readonly object name
    cdef readonly object holder
    cdef list _pending
    cdef bint _is_pending
    cdef BatchTally _total
    cdef readonly long long batches
    cdef readonly long long records
    cdef readonly long long bytes
    cdef readonly long long accepted
    cdef readonly long long unknown

    cdef int forward(self, long long batches, long long records, long long size) except -1
    cpdef int accept(self, long long batches) except -1
    cpdef int leave_unknown(self, long long batches) except -1
    cdef int _note(self) except -1


cdef class OrdinaryRequests:
    cdef object _limits
    cdef Py_ssize_t _window_bytes
    cdef object _now_ms
    cdef Py_ssize_t _most_partitions
    cdef Py_ssize_t _plain_bytes
    cdef object _rules  # RulesInForce
    cdef object _generation  # the checks of the rules; the same object until the rules change
    cdef int64_t _since
    cdef Topic[1024] _topics
    cdef list _contents  # the native checks of each slot in _topics
    cdef list _tallies  # a BatchTally for each slot
    cdef list _pending_topics  # tallies that `take_topics` has not returned yet
    cdef list _pending_senders
    cdef readonly BatchTally all
    cdef Share[200] _shares  # _MOST_PARTITIONS; each topic of a request also counts as one
    cdef int _shared
    cdef Py_ssize_t _known
    cdef Decompressor _decompressor
    cdef DecompressionBudget _free
    cdef DecompressionBudget _budget
    cdef uint8_t *_room
    cdef uint8_t[::1] _plain  # decompressed payloads
    cdef Py_ssize_t _plain_left
    cdef Py_ssize_t _most_records
    cdef Py_ssize_t _records_left
    cdef Py_ssize_t _most_headers
    cdef Py_ssize_t _headers_left
    cdef Py_ssize_t _partitions
    cdef Py_ssize_t _records
    cdef Py_ssize_t _bytes
    cdef Py_ssize_t _unchecked
    cdef int _why  # the reason to report if the next check falls back
    cdef long long[8] _fallbacks
    # The timestamp distances of the current request's batches from now, and the number of batches.
    cdef uint8_t[200] _steps_behind
    cdef uint8_t[200] _steps_ahead
    cdef int _timed
    cdef uint64_t _latest
    cdef int64_t[256] _behind
    cdef int64_t[256] _ahead
    cdef readonly long long requests
    cdef readonly long long partitions
    cdef readonly long long records
    cdef readonly long long bytes
    cdef readonly long long unchecked
    cdef readonly long long size

    cdef void _free_keys(self) noexcept
    cdef int _forget(self) except -1
    cdef int _forget_old(self, int64_t now) except -1
    cdef Topic *_find(self, const uint8_t *key, Py_ssize_t size, bint is_id) noexcept
    cpdef int validate(self, object data, Py_ssize_t start, Py_ssize_t end, int version) except -1
    cdef int validate_view(
        self, object data, const uint8_t[::1] view, Py_ssize_t start, Py_ssize_t end, int version, int64_t now
    ) except -1
    cdef object last_topics(self)
    cdef void fall_back(self, int why) noexcept
    cdef int64_t read_clock(self) except? -1
    cdef int _validate(
        self, object data, const uint8_t[::1] view, Py_ssize_t start, Py_ssize_t end, int version, int64_t now
    ) except -1
    cdef bint _is_good(
        self, object data, const uint8_t[::1] view, Py_ssize_t start, Py_ssize_t size, Topic *topic, int version,
        int64_t now,
    ) except -1
    cdef void _note_reach(self, int64_t now, uint64_t base, uint64_t before) noexcept
    cdef uint32_t _crc32c(self, object data, Py_ssize_t start, const uint8_t *at, Py_ssize_t size) except? 7
    cdef bint _are_good(
        self, object data, const uint8_t[::1] view, Py_ssize_t start, Py_ssize_t end, int codec, int64_t count,
        uint64_t base, Topic *topic, int64_t now,
    ) except -1
    cdef bint _keeps_rules(
        self, const uint8_t[::1] plain, Py_ssize_t start, Py_ssize_t end, int64_t count, Topic *topic
    ) except -1
    cdef Py_ssize_t _gather(self, object payload, int codec, bint strictly) except -2
    cdef int _make_room(self) except -1
    cdef DecompressedStream _open(self, object payload, int codec)
    cdef bint _are_good_inside(
        self, object payload, int codec, int64_t count, Topic *topic, uint64_t earliest, uint64_t window,
        uint64_t no_time,
    ) except -1
    cdef bint _scan(
        self, const uint8_t[::1] view, Py_ssize_t start, Py_ssize_t end, bint framed, DecompressedStream pieces, int64_t count,
        Topic *topic, uint64_t earliest, uint64_t window, uint64_t no_time,
    ) except -1
