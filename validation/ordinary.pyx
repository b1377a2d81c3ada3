"""Says of a Produce request that it is good, or that somebody has to look closer: the validation of the fast path.

Natively, on the bytes as they came, without an object for a request, a partition or a record. It rejects nothing and
words nothing. What is not plainly good goes to `sluicegate.validation.produce`, which decides alone: versions before 3,
topics that have not been taught, tagged fields, a batch with anything odd in its header, a bad record, a time so far
ahead that somebody is to be warned, a payload that a decoder complains about. What is called good here is good there at
the same moment; `make lanes` holds the two together.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy

from sluicegate.protocol.native_walk cimport NativeWalk, int16_at, int32_at, uint32_at, uint64_at, uvarint
from sluicegate.protocol.records.codecs.decompression_budget cimport Allowance, Bounds
from sluicegate.protocol.records.codecs.decompression cimport Decompressor, Pieces
from sluicegate.protocol.records.native_crc32c cimport has_native_crc32c, native_crc32c
from sluicegate.protocol.records.scan cimport _ordinary_run, scan_records
from sluicegate.validation.rules.native.contents cimport OrdinaryContents

from crc32c import crc32c

from sluicegate.protocol import produce_versions
from sluicegate.protocol.records.codecs.decompression_budget import OverLimit
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.scan import NULL_KEY, OUT_OF_WINDOW, WHOLE
from sluicegate.validation.fallback_reason import FallbackReason
from sluicegate.validation.policy import Framing, TimestampType

cdef enum:
    _FALL_BACK = 0
    _GOOD = 1
    _GOOD_UNANSWERED = 2

    _SLOTS = 1024
    _MOST_KNOWN = 512
    _MOST_PARTITIONS = 200
    _HEADER_BYTES = 61
    _CRC_COVERS_FROM = 21
    _LEAST_LENGTH = 14
    _MOST_REASONS = 8  # as many as there is room for in ordinary.pxd

    _LOG_APPEND_TIME = 0x08
    _CONTROL = 0x20
    _ZSTD = 4


cdef int _FIRST_VERSION = produce_versions.ONE_BATCH_SINCE
cdef int _ZSTD_SINCE = produce_versions.ZSTD_SINCE
cdef int _FLEXIBLE_SINCE = produce_versions.FLEXIBLE_SINCE
cdef int _TOPIC_ID_SINCE = produce_versions.TOPIC_ID_SINCE
cdef int _LAST_VERSION = produce_versions.TOPIC_ID_SINCE

FALL_BACK, GOOD, GOOD_UNANSWERED = _FALL_BACK, _GOOD, _GOOD_UNANSWERED

# A topic is taught anew after this long, so that whoever decides by names hears that it is in use.
cdef int64_t _KNOWN_MS = 5000
# Payloads of one request that become more than this are for a thread.
cdef Py_ssize_t _PLAIN_BYTES = 1 << 20
# Plain ones that are read with care.
cdef Py_ssize_t _CAREFULLY_READ_BYTES = 128 * 1024
# As the slow path's: more ahead than this is good, and told.
cdef uint64_t _FAR_AHEAD_MS = 3_600_000
cdef uint64_t _SIGN = <uint64_t>1 << 63
cdef Py_ssize_t _UNBOUNDED = <Py_ssize_t>1 << 62
cdef bint _HAS_NATIVE_CRC32C = has_native_crc32c()
cdef int _NULL_KEY = NULL_KEY
cdef int _OUT_OF_WINDOW = OUT_OF_WINDOW
cdef int _WHOLE = WHOLE
cdef int _BY_TOPIC = FallbackReason.TOPIC
cdef int _BY_VERSION = FallbackReason.VERSION
cdef int _BY_FIELDS = FallbackReason.FIELDS
cdef int _BY_BATCH = FallbackReason.BATCH
cdef int _BY_RECORDS = FallbackReason.RECORDS
cdef int _BY_RULES = FallbackReason.RULES
assert len(FallbackReason) <= _MOST_REASONS
cdef tuple _CODECS = tuple(Codec)


cdef extern from *:
    int __builtin_clzll(unsigned long long) nogil


cdef inline int _step_of(uint64_t away) noexcept:
    # As `sluicegate.proxy.live.reach.distance_step`: four steps from one power of two to the next.
    cdef int power
    if away < 4:
        return <int>away
    power = 63 - __builtin_clzll(away)
    return 4 * (power - 1) + <int>((away >> (power - 2)) & 3)


cdef inline int64_t _int(NativeWalk *walk, int size) noexcept:
    # An int16 or int32.
    cdef int64_t value
    if walk.failed or walk.end - walk.at < size:
        walk.failed = True
        return 0
    value = int16_at(walk.at) if size == 2 else int32_at(walk.at)
    walk.at += size
    return value


cdef inline int64_t _length(NativeWalk *walk, bint flexible, int size) noexcept:
    # Of a string (size 2), bytes or an array (4); -1 where it is null.
    return <int64_t>uvarint(walk) - 1 if flexible else _int(walk, size)


cdef inline bint _skip(NativeWalk *walk, int64_t size) noexcept:
    if walk.failed or size < 0 or size > walk.end - walk.at:
        walk.failed = True
        return False
    walk.at += size
    return True


cdef inline bint _no_tags(NativeWalk *walk, bint flexible) noexcept:
    if not flexible:
        return not walk.failed
    if walk.failed or walk.at >= walk.end or walk.at[0] != 0:
        walk.failed = True
        return False
    walk.at += 1
    return True


cdef inline bint _is_ascii(const uint8_t *at, int64_t size) noexcept:
    # What is more than that, the slow path decodes.
    cdef int64_t i
    for i in range(size):
        if at[i] & 0x80:
            return False
    return True


cdef uint32_t _hash(const char *key, Py_ssize_t size) noexcept:
    # FNV-1a
    cdef uint32_t value = 2166136261u
    cdef Py_ssize_t at
    for at in range(size):
        value = (value ^ <uint8_t>key[at]) * 16777619u
    return value


cdef class OrdinaryRequests:
    """Validates for one event loop. `requests`, `partitions`, `records`, `bytes` (of batches) and `unchecked` count what was
    called good, `size` is what those requests were together (bytes). What topics are held to is taught by who looked
    closer.
    """

    def __init__(self, limits, max_partitions, now_ms, rules):
        """`max_partitions` bounds topics and partitions of a request together, as for the slow path. `now_ms` is the
        proxy's clock, read once for all requests that came together. `rules.generation` changes when a policy does.
        """
        self._most_partitions = min(_MOST_PARTITIONS, max_partitions)
        self._plain_bytes = min(_PLAIN_BYTES, limits.max_decompressed_bytes)
        self._limits = limits
        self._window_bytes = limits.max_decompression_window_bytes
        self._most_records = _UNBOUNDED if limits.max_request_records is None else limits.max_request_records
        self._most_headers = _UNBOUNDED if limits.max_request_headers is None else limits.max_request_headers
        self._now_ms = now_ms
        self._rules = rules
        self._generation = rules.generation
        self._decompressor = Decompressor()
        self._free = Allowance(_UNBOUNDED, 0, _go_on)
        self._contents = [None] * _SLOTS

    def __dealloc__(self):
        self._free_keys()
        free(self._room)

    cdef void _free_keys(self) noexcept:
        # Also where objects are gone already.
        cdef int slot
        for slot in range(_SLOTS):
            free(self._topics[slot].key)
            self._topics[slot].key = NULL
            self._topics[slot].size = 0
        self._known = 0

    cdef int _forget(self) except -1:
        self._free_keys()
        self._contents = [None] * _SLOTS
        return 0

    def teach(self, bytes key, bint is_id, policy):
        """What a topic is held to, by its name's bytes or its id; who knows all rules found what came for it good."""
        cdef int64_t now = self._now_ms()
        cdef const char *given = key
        cdef Py_ssize_t size = len(key)
        cdef uint32_t hashed = _hash(given, size)
        cdef uint32_t slot = hashed % _SLOTS
        cdef Topic *topic
        self._forget_old(now)
        if size == 0 or self._find(<const uint8_t *>given, size, is_id) != NULL:
            return
        if self._known >= _MOST_KNOWN:
            self._forget()
        if self._known == 0:
            self._since = now
        while self._topics[slot].size:
            slot = (slot + 1) % _SLOTS
        topic = &self._topics[slot]
        topic.key = <char *>malloc(size)
        if topic.key == NULL:
            raise MemoryError
        memcpy(topic.key, given, size)
        topic.hash = hashed
        topic.is_id = is_id
        topic.is_checked = policy.checked
        topic.is_timed = policy.timestamp_type is not TimestampType.LOG_APPEND_TIME
        topic.is_compacted = policy.compacted
        topic.is_strict = policy.framing is not Framing.BROKER
        topic.before_max_ms = policy.before_max_ms
        topic.after_max_ms = policy.after_max_ms
        topic.most_bytes = _UNBOUNDED if policy.max_message_bytes is None else policy.max_message_bytes
        topic.has_rules = policy.rules is not None
        if policy.rules is not None:
            self._contents[slot] = OrdinaryContents(policy.rules.ordinary, self._window_bytes)
        topic.size = size
        self._known += 1

    cdef int _forget_old(self, int64_t now) except -1:
        cdef object generation = self._rules.generation
        if generation is not self._generation or now - self._since >= _KNOWN_MS or now < self._since:
            self._generation = generation
            self._since = now
            if self._known:
                self._forget()
        return 0

    cdef Topic *_find(self, const uint8_t *key, Py_ssize_t size, bint is_id) noexcept:
        cdef uint32_t hashed = _hash(<const char *>key, size)
        cdef uint32_t slot = hashed % _SLOTS
        cdef Topic *topic
        while True:
            topic = &self._topics[slot]
            if topic.size == 0:
                return NULL
            if topic.hash == hashed and topic.size == size and topic.is_id == is_id and memcmp(topic.key, key, size) == 0:
                return topic
            slot = (slot + 1) % _SLOTS

    def reaches(self):
        """How many batches reach so far behind now by their base time, and so far ahead by their latest: two rows of
        int64, by `sluicegate.proxy.live.reach.distance_step`.
        """
        return (
            PyBytes_FromStringAndSize(<char *>self._behind, sizeof(self._behind)),
            PyBytes_FromStringAndSize(<char *>self._ahead, sizeof(self._ahead)),
        )

    def checksum(self, object data):
        """The CRC32C of some bytes, as that of a batch is reckoned here."""
        cdef const uint8_t[::1] view = data
        return self._crc32c(data, 0, &view[0], len(data))

    cpdef int validate(self, object data, Py_ssize_t start, Py_ssize_t end, int version) except -1:
        """The body of a Produce request at data[start:end], behind its header: FALL_BACK, GOOD, or GOOD_UNANSWERED
        (acks=0). `data` is a memoryview.
        """
        cdef const uint8_t[::1] view = data
        return self.validate_view(data, view, start, end, version, self.look_at_clock())

    cdef int64_t look_at_clock(self) except? -1:
        """Now (ms), which requests are validated by; topics that were taught long ago, or otherwise, are forgotten."""
        cdef int64_t now = self._now_ms()
        self._forget_old(now)
        return now

    cdef int validate_view(
        self, object data, const uint8_t[::1] view, Py_ssize_t start, Py_ssize_t end, int version, int64_t now
    ) except -1:
        cdef int verdict = _FALL_BACK
        cdef int i
        if not _FIRST_VERSION <= version <= _LAST_VERSION:
            self._why = _BY_VERSION
        elif start >= end or not self._known:
            self._why = _BY_TOPIC
        else:
            verdict = self._validate(data, view, start, end, version, now)
        if verdict == _FALL_BACK:
            self.fall_back(self._why)
        else:
            self.requests += 1
            self.partitions += self._partitions
            self.records += self._records
            self.bytes += self._bytes
            self.unchecked += self._unchecked
            self.size += end - start
            for i in range(self._timed):
                self._behind[self._steps_behind[i]] += 1
                self._ahead[self._steps_ahead[i]] += 1
        return verdict

    cdef void fall_back(self, int why) noexcept:
        """One more request is left to the slow path."""
        self._closer[why] += 1

    def closer_by(self):
        """How many requests were left to the slow path, by why."""
        return {why: self._closer[why] for why in FallbackReason}

    cdef int _validate(
        self, object data, const uint8_t[::1] view, Py_ssize_t start, Py_ssize_t end, int version, int64_t now
    ) except -1:
        cdef bint flexible = version >= _FLEXIBLE_SINCE
        cdef const uint8_t *origin = &view[0]
        cdef const uint8_t *batch
        cdef const uint8_t *key
        cdef NativeWalk walk
        cdef int64_t size, acks, topics, partitions
        cdef Py_ssize_t left = self._most_partitions
        cdef Topic *topic
        self._partitions = self._records = self._bytes = self._unchecked = 0
        self._timed = 0
        self._why = _BY_FIELDS
        self._allowance = None
        self._plain_left = self._plain_bytes
        self._records_left = self._most_records
        self._headers_left = self._most_headers
        walk.at = origin + start
        walk.end = origin + end
        walk.failed = False
        size = _length(&walk, flexible, 2)  # the transactional id
        key = walk.at
        if size < -1 or (size > 0 and not (_skip(&walk, size) and _is_ascii(key, size))):
            return _FALL_BACK
        acks = _int(&walk, 2)
        _int(&walk, 4)  # the timeout
        topics = _length(&walk, flexible, 4)
        if walk.failed or acks < -1 or acks > 1 or topics < 0:
            return _FALL_BACK
        while topics > 0:
            topics -= 1
            left -= 1
            size = 16 if version >= _TOPIC_ID_SINCE else _length(&walk, flexible, 2)
            key = walk.at
            if size <= 0 or not _skip(&walk, size):
                return _FALL_BACK
            topic = self._find(key, size, version >= _TOPIC_ID_SINCE)
            if topic == NULL:
                self._why = _BY_TOPIC
                return _FALL_BACK
            partitions = _length(&walk, flexible, 4)
            left -= partitions
            if partitions < 0 or left < 0:
                return _FALL_BACK
            while partitions > 0:
                partitions -= 1
                _int(&walk, 4)  # the partition's number
                size = _length(&walk, flexible, 4)
                batch = walk.at
                if size < 0 or not _skip(&walk, size) or not _no_tags(&walk, flexible):
                    return _FALL_BACK
                if not self._is_good(data, view, batch - origin, size, topic, version, now):
                    return _FALL_BACK
            if not _no_tags(&walk, flexible):
                return _FALL_BACK
        if not _no_tags(&walk, flexible) or walk.at != walk.end:
            return _FALL_BACK
        return _GOOD if acks else _GOOD_UNANSWERED

    cdef bint _is_good(
        self, object data, const uint8_t[::1] view, Py_ssize_t start, Py_ssize_t size, Topic *topic, int version,
        int64_t now,
    ) except -1:
        # One batch and nothing else, in the order of docs/checks.md; whatever is odd in it, the slow path names.
        cdef const uint8_t *at
        cdef int attributes, codec
        cdef int64_t count
        self._why = _BY_BATCH
        if size < _HEADER_BYTES:  # nothing may lie there at all
            return False
        at = &view[start]
        if <int64_t>int32_at(at + 8) + 12 != size or at[16] != 2:
            return False
        count = int32_at(at + 57)
        self._records_left -= max(count, 0)
        if self._records_left < 0:
            return False
        if not topic.is_checked:
            self._unchecked += 1
            self._why = _BY_FIELDS
            return True
        attributes = at[22]
        codec = attributes & 7
        if uint64_at(at) != 0 or size > topic.most_bytes or attributes & (_LOG_APPEND_TIME | _CONTROL):
            return False
        if codec > _ZSTD or (codec == _ZSTD and version < _ZSTD_SINCE):
            return False
        if count <= 0 or <int64_t>int32_at(at + 23) + 1 != count:
            return False
        if <int64_t>uint64_at(at + 43) > -1 and int32_at(at + 53) < 0:
            return False
        if self._crc32c(data, start + _CRC_COVERS_FROM, at + _CRC_COVERS_FROM, size - _CRC_COVERS_FROM) != uint32_at(at + 17):
            return False
        self._why = _BY_RECORDS
        if not self._are_good(data, view, start + _HEADER_BYTES, start + size, codec, count, uint64_at(at + 27), topic, now):
            return False
        self._partitions += 1
        self._records += count
        self._bytes += size
        self._why = _BY_FIELDS
        if topic.is_timed:
            self._note_reach(now, uint64_at(at + 27), topic.before_max_ms)
        return True

    cdef void _note_reach(self, int64_t now, uint64_t base, uint64_t before) noexcept:
        # Of a good batch; what has no time at all reaches nowhere.
        cdef int64_t behind = <int64_t>(<uint64_t>now - base)
        cdef int64_t ahead = <int64_t>(self._latest - before)
        if base == <uint64_t>-1:
            return
        self._steps_behind[self._timed] = _step_of(behind) if behind > 0 else 0
        self._steps_ahead[self._timed] = _step_of(ahead) if ahead > 0 else 0
        self._timed += 1

    cdef uint32_t _crc32c(self, object data, Py_ssize_t start, const uint8_t *at, Py_ssize_t size) except? 7:
        if _HAS_NATIVE_CRC32C:
            return native_crc32c(at, size)
        return crc32c(data[start : start + size])

    cdef bint _are_good(
        self, object data, const uint8_t[::1] view, Py_ssize_t start, Py_ssize_t end, int codec, int64_t count,
        uint64_t base, Topic *topic, int64_t now,
    ) except -1:
        # The records: every one of them, by the scan that both paths share.
        cdef uint64_t before = topic.before_max_ms if topic.is_timed else 0
        cdef uint64_t window = before + topic.after_max_ms if topic.is_timed else 0
        cdef uint64_t earliest = (<uint64_t>now - before - base) if topic.is_timed else 0
        cdef uint64_t no_time = (<uint64_t>-1 - base) if topic.is_timed else 0
        cdef uint64_t latest = 0
        cdef Py_ssize_t behind, taken, size
        if codec == 0:
            behind, taken, latest = _ordinary_run(
                view, start, end, count, True, topic.is_strict, 0, topic.is_compacted, earliest,
                window if topic.is_timed else <uint64_t>-1, no_time, 0,
            )
            if taken != count or behind != end:
                # There are more than ordinary ones: of a large batch, the slow path takes care that others wait not long.
                if end - start > _CAREFULLY_READ_BYTES:
                    return False
                if not self._scan(view, start, end, True, None, count, topic, earliest, window, no_time):
                    return False
            elif topic.is_timed and latest > before + _FAR_AHEAD_MS:
                return False
            else:
                self._latest = latest
            return self._keeps_rules(view, start, end, count, topic)
        if topic.has_rules:
            size = self._gather(data[start:end], codec, topic.is_strict)
            if size <= 0 or not self._scan(self._plain, 0, size, False, None, count, topic, earliest, window, no_time):
                return False
            return self._keeps_rules(self._plain, 0, size, count, topic)
        return self._are_good_inside(data[start:end], codec, count, topic, earliest, window, no_time)

    cdef int _make_room(self) except -1:
        # Not before it is wanted, and no page of it before it is written to.
        if self._room == NULL:
            self._room = <uint8_t *>malloc(_PLAIN_BYTES)
            if self._room == NULL:
                raise MemoryError
            self._plain = <uint8_t[:_PLAIN_BYTES]>self._room
        return 0

    cdef bint _keeps_rules(
        self, const uint8_t[::1] plain, Py_ssize_t start, Py_ssize_t end, int64_t count, Topic *topic
    ) except -1:
        # Of records that were scanned.
        cdef OrdinaryContents contents
        if not topic.has_rules:
            return True
        contents = self._contents[topic - self._topics]
        if contents.are_good(&plain[0] + start, &plain[0] + end, count):
            return True
        self._why = _BY_RULES
        return False

    cdef Py_ssize_t _gather(self, object payload, int codec, bint strictly) except -2:
        # The size of what is in _plain then; -1: look closer. Rules want records in one piece.
        cdef Pieces pieces
        cdef const uint8_t[::1] piece
        cdef Py_ssize_t filled = 0
        cdef Py_ssize_t size
        self._make_room()
        pieces = self._open(payload, codec)
        try:
            while True:
                found = pieces.more()
                if found is None:
                    return -1 if pieces.failure is not None or (strictly and pieces.oddity is not None) else filled
                piece = found
                size = len(found)
                if size > _PLAIN_BYTES - filled:
                    return -1
                memcpy(self._room + filled, &piece[0], size)
                filled += size
        except OverLimit:
            return -1
        finally:
            piece = None
            self._decompressor.close()

    cdef Pieces _open(self, object payload, int codec):
        if self._allowance is None:
            self._allowance = Allowance(self._plain_left, 0, _go_on)
        bounds = Bounds(self._limits.plain_limit(len(payload)), self._window_bytes, self._allowance)
        return self._decompressor.open(_CODECS[codec], payload, bounds)

    cdef bint _are_good_inside(
        self, object payload, int codec, int64_t count, Topic *topic, uint64_t earliest, uint64_t window,
        uint64_t no_time,
    ) except -1:
        cdef Pieces pieces
        cdef object first
        cdef const uint8_t[::1] plain
        cdef bint good
        pieces = self._open(payload, codec)
        try:
            first = pieces.more()
            if first is None:
                return False
            plain = first
            good = self._scan(plain, 0, len(first), False, pieces, count, topic, earliest, window, no_time)
            return good and pieces.failure is None and not (topic.is_strict and pieces.oddity is not None)
        except OverLimit:
            return False
        finally:
            plain = None
            self._decompressor.close()

    cdef bint _scan(
        self, const uint8_t[::1] view, Py_ssize_t start, Py_ssize_t end, bint framed, Pieces pieces, int64_t count,
        Topic *topic, uint64_t earliest, uint64_t window, uint64_t no_time,
    ) except -1:
        cdef int look_for = (_NULL_KEY if topic.is_compacted else 0) | (_OUT_OF_WINDOW if topic.is_timed else 0)
        cdef uint64_t overflow = _SIGN + topic.before_max_ms
        cdef uint64_t latest
        cdef Allowance allowance = self._free if pieces is None else self._allowance
        allowance.headers_left = self._headers_left
        try:
            outcome, _, last, _ = scan_records(
                view, start, end, count, framed, look_for, earliest, window, no_time, overflow, pieces, allowance, 0,
                None, topic.is_strict,
            )
        except OverLimit:
            return False
        self._headers_left = allowance.headers_left
        if outcome != _WHOLE:
            return False
        self._latest = latest = last
        return not topic.is_timed or latest <= topic.before_max_ms + _FAR_AHEAD_MS


def _go_on():
    """What may take longer is for the slow path, which gives way."""
