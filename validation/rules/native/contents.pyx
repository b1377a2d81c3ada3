"""Makes the native checks of rules for all records of a batch: all records are good, or the fast path falls back.

Works on plain bytes that were scanned before (`sluicegate.protocol.records.scan`), without an object for a record.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from sluicegate.protocol.native_walk cimport NativeWalk, uvarint
from sluicegate.validation.rules.avro.datum cimport Datum
from sluicegate.validation.rules.json.native cimport OrdinaryJsonSchema, is_json, is_text

from sluicegate.validation.rules.native.questions import JsonSchemaQuestion

cdef enum:
    # The largest key or value that the event loop checks.
    _MOST_BYTES = 64 * 1024


cdef inline int64_t _varint(NativeWalk *walk) noexcept:
    # Read a zig-zag int32 like the scan.
    cdef uint64_t value = uvarint(walk) & 0xFFFFFFFF
    return <int64_t>(value >> 1) ^ -<int64_t>(value & 1)


cdef inline void _skip_varlong(NativeWalk *walk) noexcept:
    cdef int left = 10
    cdef uint8_t byte
    while walk.at < walk.end and left > 0:
        byte = walk.at[0]
        walk.at += 1
        left -= 1
        if byte < 0x80:
            return
    walk.failed = True


cdef inline const uint8_t *_taken(NativeWalk *walk, int64_t *size) noexcept:
    # Read the position and the size of the next bytes; a size of -1 is null.
    cdef const uint8_t *found
    size[0] = _varint(walk)
    if walk.failed or size[0] > walk.end - walk.at:
        walk.failed = True
        return NULL
    if size[0] < 0:
        size[0] = -1
        return NULL
    found = walk.at
    walk.at += size[0]
    return found


cdef Asked _asked(question):
    cdef Asked asked
    asked.required = question.required
    asked.least = question.least
    asked.most = question.most
    asked.is_text = question.is_text
    asked.json_depth = question.json_depth
    asked.is_read = asked.is_text or asked.json_depth or len(question.schemas) > 0
    return asked


cdef class _Schema:
    # An Avro schema with its reader, or a JSON Schema.
    cdef Datum datum
    cdef int64_t root
    cdef OrdinaryJsonSchema json
    cdef int64_t behind

    def __init__(self, question):
        self.behind = question.behind
        if isinstance(question, JsonSchemaQuestion):
            self.json = OrdinaryJsonSchema(question.plan)
        else:
            self.datum = Datum(question.numbers, b"", 0)
            self.root = question.root

    cdef bint is_good(self, const uint8_t *at, int64_t size) noexcept:
        if self.behind:
            if size < self.behind or at[0] != 0:
                return False
            at += self.behind
            size -= self.behind
        if self.json is not None:
            return self.json.follows(at, at + size)
        self.datum.data = at
        self.datum.position = 0
        self.datum.end = size
        self.datum.why = 0
        return self.datum.is_whole(self.root)


cdef class OrdinaryContents:
    """The native checks (`questions`) of one topic, for one thread. Parts larger than `window_bytes` fall back."""

    def __init__(self, questions, window_bytes):
        self._key = _asked(questions.key)
        self._value = _asked(questions.value)
        self._key_schemas = [_Schema(question) for question in questions.key.schemas]
        self._value_schemas = [_Schema(question) for question in questions.value.schemas]
        self._most_records = questions.most_records
        self._most_bytes = min(window_bytes, _MOST_BYTES)

    def accepts(self, bytes records, count):
        """Return whether all `count` records are good."""
        cdef const uint8_t *at = records
        return self.accepts_records(at, at + len(records), count)

    cdef bint accepts_records(self, const uint8_t *at, const uint8_t *end, int64_t count):
        cdef NativeWalk walk
        cdef const uint8_t *key
        cdef const uint8_t *value
        cdef int64_t key_size, value_size, size, left
        if count > self._most_records:
            return False
        walk.at = at
        walk.end = end
        walk.failed = False
        while count > 0:
            count -= 1
            _varint(&walk)  # length
            walk.at += walk.at < walk.end  # attributes
            _skip_varlong(&walk)
            _varint(&walk)  # offset delta
            key = _taken(&walk, &key_size)
            value = _taken(&walk, &value_size)
            left = _varint(&walk)
            while left > 0 and not walk.failed:
                left -= 1
                _taken(&walk, &size)
                _taken(&walk, &size)
            if walk.failed:
                return False
            if not self._is_good(key, key_size, &self._key, self._key_schemas):
                return False
            if not self._is_good(value, value_size, &self._value, self._value_schemas):
                return False
        return True

    cdef bint _is_good(self, const uint8_t *at, int64_t size, const Asked *asked, list schemas):
        cdef _Schema schema
        if size < 0:
            return not asked.required
        if size < asked.least or size > asked.most:
            return False
        if not asked.is_read:
            return True
        if size > self._most_bytes:
            return False
        if asked.is_text and not is_text(at, at + size):
            return False
        if asked.json_depth and not is_json(at, at + size, asked.json_depth):
            return False
        for schema in schemas:
            if not schema.is_good(at, size):
                return False
        return True
