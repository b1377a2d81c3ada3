"""The validation of the fast path: accepts plainly good Produce requests, and falls back for all others.

Native code on the bytes as they came, without an object for a request, partition or record. It rejects nothing and
writes no texts. All other requests go to `sluicegate.validation.produce.request`, which alone decides: versions before
3, topics that the fast path does not know, tagged fields, an unusual batch header, a bad record, a time so far ahead
that it is logged, a payload with a decoder error. A request that is good here is good there at the same moment;
`make lanes` compares the two.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy

from sluicegate.protocol.native_walk cimport NativeWalk, int16_at, int32_at, uint32_at, uint64_at, uvarint
from sluicegate.protocol.records.codecs.decompression_budget cimport DecompressionBudget, PayloadLimits
from sluicegate.protocol.records.codecs.decompression cimport Decompressor, DecompressedStream
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
from sluicegate.validation.timestamps import IN_FUTURE_MS

cdef enum:
    _FALL_BACK = 0
    _GOOD = 1
    _GOOD_NO_RESPONSE = 2

    _SLOTS = 1024
    _MOST_KNOWN = 512
    _MOST_PARTITIONS = 200
    _HEADER_BYTES = 61
    _CRC_COVERS_FROM = 21
    _LEAST_LENGTH = 14
    _MOST_REASONS = 8  # the size of the arrays in ordinary.pxd

    _LOG_APPEND_TIME = 0x08
    _CONTROL = 0x20
    _ZSTD = 4


cdef int _FIRST_VERSION = produce_versions.ONE_BATCH_SINCE
cdef int _ZSTD_SINCE = produce_versions.ZSTD_SINCE
cdef int _FLEXIBLE_SINCE = produce_versions.FLEXIBLE_SINCE
cdef int _TOPIC_ID_SINCE = produce_versions.TOPIC_ID_SINCE
cdef int _LAST_VERSION = produce_versions.TOPIC_ID_SINCE

FALL_BACK, GOOD, GOOD_NO_RESPONSE = _FALL_BACK, _GOOD, _GOOD_NO_RESPONSE

# A topic is forgotten after this time, so that the slow path regularly sees which topics are in use.
cdef int64_t _KNOWN_MS = 5000
# A request whose payloads decompress to more than this is validated in a thread.
cdef Py_ssize_t _PLAIN_BYTES = 1 << 20
# The largest decompressed payload that is read carefully here.
cdef Py_ssize_t _CAREFULLY_READ_BYTES = 128 * 1024
# As on the slow path, times further ahead than this are valid but logged.
cdef uint64_t _IN_FUTURE_MS = IN_FUTURE_MS
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
    # The same as `sluicegate.validation.units.distance_step`, with four steps for each power of two.
    cdef int power
    if away < 4:
        return <int>away
    power = 63 - __builtin_clzll(away)
    return 4 * (power - 1) + <int>((away >> (power - 2)) & 3)


cdef inline int64_t _int(NativeWalk *walk, int size) noexcept:
    # Read an int16 or int32.
    cdef int64_t value
    if walk.failed or walk.end - walk.at < size:
        walk.failed = True
        return 0
    value = int16_at(walk.at) if size == 2 else int32_at(walk.at)
    walk.at += size
    return value


cdef inline int64_t _length(NativeWalk *walk, bint flexible, int size) noexcept:
    # Read the length of a string (size 2), of bytes or of an array (size 4); -1 is null.
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
    # The slow path decodes all other strings.
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


cdef class BatchTally:
    """Counts the validated batches of one topic, or of one client, on the fast path: the forwarded `batches` with their
    `records` and `bytes`, and of these the `accepted` ones, and those whose outcome stays `unknown`. Other outcomes are
    counted elsewhere. `holder` as in `ClientDetails.holder`, None for a topic.
    """

    def __init__(self, name, holder, list pending, BatchTally total):
        """`pending` gets each tally that has changed since `take`; `total` counts the same, None: nothing else does."""
        self.name = name
        self.holder = holder
        self._pending = pending
        self._total = total

    cdef int forward(self, long long batches, long long records, long long size) except -1:
        self.batches += batches
        self.records += records
        self.bytes += size
        return self._note()

    cpdef int accept(self, long long batches) except -1:
        """Count batches that the broker has stored."""
        self.accepted += batches
        if self._total is not None:
            self._total.accepted += batches
        return self._note()

    cpdef int leave_unknown(self, long long batches) except -1:
        """Count batches for which no response comes."""
        self.unknown += batches
        if self._total is not None:
            self._total.unknown += batches
        return self._note()

    cdef int _note(self) except -1:
        if not self._is_pending:
            self._is_pending = True
            self._pending.append(self)
        return 0

    def take(self):
        """Return the numbers since the last call: batches, records, bytes, accepted, unknown."""
        taken = self.batches, self.records, self.bytes, self.accepted, self.unknown
        self.batches = self.records = self.bytes = self.accepted = self.unknown = 0
        self._is_pending = False
        return taken


cdef class OrdinaryRequests:
    """Validates for one event loop. `requests`, `partitions`, `records`, `bytes` (of batches) and `unchecked` count the good
    requests, `size` is their total size (bytes). The slow path adds topics with their policy (`add_topic`).
    """

    def __init__(self, limits, max_partitions, now_ms, rules):
        """`max_partitions` limits topics and partitions of a request together, as on the slow path. `now_ms`: the proxy's
        clock, read once for requests that arrive together. `rules.generation` changes with the policies.
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
        self._free = DecompressionBudget(_UNBOUNDED, 0, _go_on)
        self._contents = [None] * _SLOTS
        self._tallies = [None] * _SLOTS
        self._pending_topics = []
        self._pending_senders = []
        self.all = BatchTally(None, None, [], None)

    def __dealloc__(self):
        self._free_keys()
        free(self._room)

    cdef void _free_keys(self) noexcept:
        # Also called during deallocation, when objects may no longer exist.
        cdef int slot
        for slot in range(_SLOTS):
            free(self._topics[slot].key)
            self._topics[slot].key = NULL
            self._topics[slot].size = 0
        self._known = 0

    cdef int _forget(self) except -1:
        self._free_keys()
        self._contents = [None] * _SLOTS
        self._tallies = [None] * _SLOTS
        return 0

    def add_topic(self, bytes key, bint is_id, str name, policy):
        """Add a topic, by the bytes of its name or its id, with its policy; the slow path has accepted a batch for it."""
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
        self._tallies[slot] = BatchTally(name, None, self._pending_topics, None)
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

    def distance_counts(self):
        """Return the number of batches by how far their base time is behind now, and their latest time ahead: two rows of
        int64, by `sluicegate.validation.units.distance_step`.
        """
        return (
            PyBytes_FromStringAndSize(<char *>self._behind, sizeof(self._behind)),
            PyBytes_FromStringAndSize(<char *>self._ahead, sizeof(self._ahead)),
        )

    def checksum(self, object data):
        """Return the CRC32C of some bytes, as computed for a batch."""
        cdef const uint8_t[::1] view = data
        return self._crc32c(data, 0, &view[0], len(data))

    cpdef int validate(self, object data, Py_ssize_t start, Py_ssize_t end, int version) except -1:
        """Validate the body of a Produce request, data[start:end]: FALL_BACK, GOOD, or GOOD_NO_RESPONSE (acks=0).

        `data` is a memoryview.
        """
        cdef const uint8_t[::1] view = data
        return self.validate_view(data, view, start, end, version, self.read_clock())

    cdef int64_t read_clock(self) except? -1:
        """Return now (ms) for the following requests; forget topics that are old, or of another generation."""
        cdef int64_t now = self._now_ms()
        self._forget_old(now)
        return now

    cdef int validate_view(
        self, object data, const uint8_t[::1] view, Py_ssize_t start, Py_ssize_t end, int version, int64_t now
    ) except -1:
        cdef int verdict = _FALL_BACK
        cdef int i
        cdef Share *share
        cdef BatchTally tally
        cdef Py_ssize_t partitions = 0, records = 0, size = 0
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
            for i in range(self._shared):
                share = &self._shares[i]
                tally = <BatchTally>self._tallies[share.topic - self._topics]
                tally.forward(share.partitions - partitions, share.records - records, share.bytes - size)
                partitions, records, size = share.partitions, share.records, share.bytes
            for i in range(self._timed):
                self._behind[self._steps_behind[i]] += 1
                self._ahead[self._steps_ahead[i]] += 1
        return verdict

    cdef object last_topics(self):
        # Return the tally of the last valid request's topic. If there are several, return pairs of a tally and a number
        # of batches.
        cdef int i
        cdef Py_ssize_t before = 0
        if self._shared == 1:
            return self._tallies[self._shares[0].topic - self._topics]
        several = []
        for i in range(self._shared):
            several.append((self._tallies[self._shares[i].topic - self._topics], self._shares[i].partitions - before))
            before = self._shares[i].partitions
        return several

    def sender(self, client_id, holder):
        """Return a tally for the batches of a client."""
        return BatchTally(client_id, holder, self._pending_senders, self.all)

    def take_topics(self):
        """Return the tallies of topics that have changed since the last call; the caller takes their numbers."""
        taken = self._pending_topics.copy()
        self._pending_topics.clear()
        return taken

    def take_senders(self):
        """Return the tallies of clients that have changed since the last call; the caller takes their numbers."""
        taken = self._pending_senders.copy()
        self._pending_senders.clear()
        return taken

    cdef void fall_back(self, int why) noexcept:
        """Count a request that is left to the slow path."""
        self._fallbacks[why] += 1

    def fallback_counts(self):
        """Return how many requests were left to the slow path, by reason."""
        return {why: self._fallbacks[why] for why in FallbackReason}

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
        self._timed = self._shared = 0
        self._why = _BY_FIELDS
        self._budget = None
        self._plain_left = self._plain_bytes
        self._records_left = self._most_records
        self._headers_left = self._most_headers
        walk.at = origin + start
        walk.end = origin + end
        walk.failed = False
        size = _length(&walk, flexible, 2)  # transactional id
        key = walk.at
        if size < -1 or (size > 0 and not (_skip(&walk, size) and _is_ascii(key, size))):
            return _FALL_BACK
        acks = _int(&walk, 2)
        _int(&walk, 4)  # timeout
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
                _int(&walk, 4)  # partition index
                size = _length(&walk, flexible, 4)
                batch = walk.at
                if size < 0 or not _skip(&walk, size) or not _no_tags(&walk, flexible):
                    return _FALL_BACK
                if not self._is_good(data, view, batch - origin, size, topic, version, now):
                    return _FALL_BACK
            if not _no_tags(&walk, flexible):
                return _FALL_BACK
            self._shares[self._shared] = Share(topic, self._partitions, self._records, self._bytes)
            self._shared += 1
        if not _no_tags(&walk, flexible) or walk.at != walk.end:
            return _FALL_BACK
        return _GOOD if acks else _GOOD_NO_RESPONSE

    cdef bint _is_good(
        self, object data, const uint8_t[::1] view, Py_ssize_t start, Py_ssize_t size, Topic *topic, int version,
        int64_t now,
    ) except -1:
        # Check for exactly one valid batch, in the order of docs/checks.md. The slow path reports violations.
        cdef const uint8_t *at
        cdef int attributes, codec
        cdef int64_t count
        self._why = _BY_BATCH
        if size < _HEADER_BYTES:  # there may be no bytes
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
        # Count a valid batch with a timestamp.
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
        # Check all records with the scan that both paths share.
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
                # The records are not all ordinary. For a large batch use the slow path, which lets other work run.
                if end - start > _CAREFULLY_READ_BYTES:
                    return False
                if not self._scan(view, start, end, True, None, count, topic, earliest, window, no_time):
                    return False
            elif topic.is_timed and latest > before + _IN_FUTURE_MS:
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
        # Allocated when it is first used; the system maps its pages when they are written.
        if self._room == NULL:
            self._room = <uint8_t *>malloc(_PLAIN_BYTES)
            if self._room == NULL:
                raise MemoryError
            self._plain = <uint8_t[:_PLAIN_BYTES]>self._room
        return 0

    cdef bint _keeps_rules(
        self, const uint8_t[::1] plain, Py_ssize_t start, Py_ssize_t end, int64_t count, Topic *topic
    ) except -1:
        # Check the contents of scanned records.
        cdef OrdinaryContents contents
        if not topic.has_rules:
            return True
        contents = self._contents[topic - self._topics]
        if contents.accepts_records(&plain[0] + start, &plain[0] + end, count):
            return True
        self._why = _BY_RULES
        return False

    cdef Py_ssize_t _gather(self, object payload, int codec, bint strictly) except -2:
        # Decompress into _plain and return the size, or -1 to fall back. Rules need contiguous records.
        cdef DecompressedStream pieces
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

    cdef DecompressedStream _open(self, object payload, int codec):
        if self._budget is None:
            self._budget = DecompressionBudget(self._plain_left, 0, _go_on)
        bounds = PayloadLimits(self._limits.plain_limit(len(payload)), self._window_bytes, self._budget)
        return self._decompressor.open(_CODECS[codec], payload, bounds)

    cdef bint _are_good_inside(
        self, object payload, int codec, int64_t count, Topic *topic, uint64_t earliest, uint64_t window,
        uint64_t no_time,
    ) except -1:
        cdef DecompressedStream pieces
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
        self, const uint8_t[::1] view, Py_ssize_t start, Py_ssize_t end, bint framed, DecompressedStream pieces, int64_t count,
        Topic *topic, uint64_t earliest, uint64_t window, uint64_t no_time,
    ) except -1:
        cdef int look_for = (_NULL_KEY if topic.is_compacted else 0) | (_OUT_OF_WINDOW if topic.is_timed else 0)
        cdef uint64_t overflow = _SIGN + topic.before_max_ms
        cdef uint64_t latest
        cdef DecompressionBudget budget = self._free if pieces is None else self._budget
        budget.headers_left = self._headers_left
        try:
            outcome, _, last, _ = scan_records(
                view, start, end, count, framed, look_for, earliest, window, no_time, overflow, pieces, budget, 0,
                None, topic.is_strict,
            )
        except OverLimit:
            return False
        self._headers_left = budget.headers_left
        if outcome != _WHOLE:
            return False
        self._latest = latest = last
        return not topic.is_timed or latest <= topic.before_max_ms + _IN_FUTURE_MS


def _go_on():
    """Do nothing: longer work is left to the slow path, which gives way."""
