"""Checks whether bytes are plainly one JSON text (`sluicegate.validation.rules.json.text`), or follow the plan of a schema
(`sluicegate.validation.rules.json.plan`); otherwise the caller falls back.

One pass over the text without objects, ten times as fast as the reader that reports faults: strings, which are most of
JSON, are read 16 bytes at a time. A rejected text may still be JSON. Unusual but well-formed JSON is left to jsonschema-rs:
keys with escapes, surrogates, very large numbers, fractions near a bound.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcmp

cdef enum:
    _NULL = 1
    _BOOLEAN = 2
    _INTEGER = 4
    _NUMBER = 8
    _STRING = 16
    _ARRAY = 32
    _OBJECT = 64
    # The nesting limit with a schema, which is lower than that of any reader.
    _DEEPEST = 100
    # The nesting limit without a schema. The configuration allows fewer levels.
    _DEEPEST_TEXT = 512
    # A number with at most this many digits always fits in an int64.
    _MOST_DIGITS = 18


def is_ordinary(bytes text, int max_depth):
    """Return whether it is JSON with at most `max_depth` nested arrays and objects; False: fall back."""
    cdef const uint8_t *at = text
    return is_json(at, at + len(text), max_depth)


cdef bint is_json(const uint8_t *at, const uint8_t *end, int max_depth) noexcept nogil:
    cdef uint8_t[_DEEPEST_TEXT] closing
    cdef int depth = 0
    cdef uint8_t byte
    if max_depth > _DEEPEST_TEXT:
        max_depth = _DEEPEST_TEXT
    at = behind_blanks(at, end)
    while True:
        # The next token is a value.
        if at == end:
            return False
        byte = at[0]
        if byte == 0x22:
            at = behind_string(at + 1, end)
        elif byte == 0x7B or byte == 0x5B:  # { [
            if depth == max_depth:
                return False
            at = behind_blanks(at + 1, end)
            closing[depth] = byte + 2
            if at == end:
                return False
            if at[0] != closing[depth]:
                depth += 1
                if byte == 0x7B:
                    at = behind_key(at, end)
                    if at == NULL:
                        return False
                continue
            at += 1
        elif byte == 0x2D or 0x30 <= byte <= 0x39:
            at = behind_number(at, end)
        else:
            at = behind_word(at, end)
        if at == NULL:
            return False
        while True:
            # The previous token was a value.
            at = behind_blanks(at, end)
            if depth == 0:
                return at == end
            if at == end:
                return False
            byte = at[0]
            at += 1
            if byte == 0x2C:
                at = behind_key(at, end) if closing[depth - 1] == 0x7D else behind_blanks(at, end)
                if at == NULL:
                    return False
                break
            depth -= 1
            if byte != closing[depth]:
                return False


cdef class OrdinaryJsonSchema:
    """A compiled plan. Thread-safe. `longest_run`: the most further comparisons of a name in a hash table."""

    def __init__(self, plan):
        cdef Py_ssize_t place, names_at = 0, slots = 0
        cdef Part *part
        parts = plan.parts
        self._held = [word for part_ in parts for word in (*(name for name, _, _ in part_.names), *(part_.words or ()))]
        self._root = plan.root
        self._parts = <Part *>malloc(max(len(parts), 1) * sizeof(Part))
        self._names = <Name *>malloc(max(len(self._held), 1) * sizeof(Name))
        self._slots = <int *>malloc((4 * len(self._held) + 2 * len(parts)) * sizeof(int))
        if self._parts == NULL or self._names == NULL or self._slots == NULL:
            raise MemoryError
        for place, given in enumerate(parts):
            part = &self._parts[place]
            part.types = given.types
            part.least = given.least
            part.most = given.most
            part.min_length = given.min_length
            part.max_length = given.max_length
            part.min_items = given.min_items
            part.max_items = given.max_items
            part.items = given.items
            part.additional = given.additional
            part.required = given.required
            part.names_at = names_at
            part.names = len(given.names)
            for _, child, bit in given.names:
                self._names[names_at].part = child
                self._names[names_at].bit = bit
                names_at += 1
            part.words_at = names_at
            part.words = -1 if given.words is None else len(given.words)
            names_at += len(given.words or ())
            part.slots_at = slots
            part.slots = _slots_for(part.names)
            slots += part.slots + 1
            part.word_slots_at = slots
            part.word_slots = _slots_for(part.words)
            slots += part.word_slots + 1
        for place, held in enumerate(self._held):
            self._names[place].at = held
            self._names[place].size = len(held)
        for place in range(len(parts)):
            part = &self._parts[place]
            self._fill_slots(part.slots_at, part.slots, part.names_at, part.names)
            self._fill_slots(part.word_slots_at, part.word_slots, part.words_at, part.words)

    cdef void _fill_slots(self, int slots_at, uint64_t last, int names_at, int count) noexcept:
        cdef int *slots = self._slots + slots_at
        cdef uint64_t slot
        cdef int place, run
        for slot in range(last + 1):
            slots[slot] = -1
        for place in range(count):
            slot = _hash(self._names[names_at + place].at, self._names[names_at + place].size) & last
            run = 0
            while slots[slot] >= 0:
                slot = (slot + 1) & last
                run += 1
            slots[slot] = place
            self.longest_run = max(self.longest_run, run)

    cdef int _place_of(self, int slots_at, uint64_t last, int names_at, const uint8_t *key, int64_t size) noexcept:
        # Return the index of a name in a part or in its words, or -1.
        cdef const int *slots = self._slots + slots_at
        cdef const Name *names = self._names + names_at
        cdef uint64_t slot = _hash(key, size) & last
        while slots[slot] >= 0:
            if _is_name(&names[slots[slot]], key, size):
                return slots[slot]
            slot = (slot + 1) & last
        return -1

    def __dealloc__(self):
        free(self._parts)
        free(self._names)
        free(self._slots)

    def takes(self, bytes text):
        """Return whether it is JSON that follows the schema; False: fall back."""
        cdef const uint8_t *at = text
        return self.follows(at, at + len(text))

    cdef bint follows(self, const uint8_t *at, const uint8_t *end) noexcept:
        at = self._value(behind_blanks(at, end), end, self._root, 0)
        return at != NULL and behind_blanks(at, end) == end

    cdef const uint8_t *_value(self, const uint8_t *at, const uint8_t *end, int place, int depth) noexcept:
        # Return the position after the value at `at` if it follows the part at `place`.
        cdef const Part *part
        cdef uint8_t byte
        if place < 0 or at == end or depth == _DEEPEST:
            return NULL
        part = &self._parts[place]
        byte = at[0]
        if byte == 0x22:
            return self._string(at + 1, end, part) if part.types & _STRING else NULL
        if part.words >= 0:
            return NULL
        if byte == 0x7B:
            return self._object(at + 1, end, part, depth + 1) if part.types & _OBJECT else NULL
        if byte == 0x5B:
            return self._array(at + 1, end, part, depth + 1) if part.types & _ARRAY else NULL
        if byte == 0x2D or 0x30 <= byte <= 0x39:
            return _behind_bounded(at, end, part)
        if not part.types & (_NULL if byte == 0x6E else _BOOLEAN):
            return NULL
        return behind_word(at, end)

    cdef const uint8_t *_object(self, const uint8_t *at, const uint8_t *end, const Part *part, int depth) noexcept:
        cdef const Name *names = self._names + part.names_at
        cdef const uint8_t *key
        cdef uint64_t seen = 0
        cdef int64_t size
        cdef int place, expected = 0
        at = behind_blanks(at, end)
        if at < end and at[0] == 0x7D:
            return at + 1 if part.required == 0 else NULL
        while True:
            if at == end or at[0] != 0x22:
                return NULL
            key = at + 1
            at = behind_string(key, end)
            if at == NULL:
                return NULL
            size = at - key - 1
            if memchr(key, 0x5C, size) != NULL:
                return NULL
            # Keys are often in the schema's order.
            if expected >= part.names or not _is_name(&names[expected], key, size):
                expected = self._place_of(part.slots_at, part.slots, part.names_at, key, size)
            place = part.additional
            if expected >= 0:
                place = names[expected].part
                seen |= names[expected].bit
            expected += 1
            at = behind_blanks(at, end)
            if at == end or at[0] != 0x3A:
                return NULL
            at = self._value(behind_blanks(at + 1, end), end, place, depth)
            if at == NULL:
                return NULL
            at = behind_blanks(at, end)
            if at == end:
                return NULL
            if at[0] == 0x7D:
                return at + 1 if seen == part.required else NULL
            if at[0] != 0x2C:
                return NULL
            at = behind_blanks(at + 1, end)

    cdef const uint8_t *_array(self, const uint8_t *at, const uint8_t *end, const Part *part, int depth) noexcept:
        cdef int64_t count = 0
        at = behind_blanks(at, end)
        if at < end and at[0] == 0x5D:
            return at + 1 if part.min_items == 0 else NULL
        while True:
            at = self._value(at, end, part.items, depth)
            if at == NULL:
                return NULL
            count += 1
            at = behind_blanks(at, end)
            if at == end:
                return NULL
            if at[0] == 0x5D:
                return at + 1 if part.min_items <= count <= part.max_items else NULL
            if at[0] != 0x2C:
                return NULL
            at = behind_blanks(at + 1, end)

    cdef const uint8_t *_string(self, const uint8_t *at, const uint8_t *end, const Part *part) noexcept:
        # `at` is after the opening quote.
        cdef const uint8_t *begin = at
        cdef bint has_escapes
        cdef int64_t size
        at = behind_string(at, end)
        if at == NULL:
            return NULL
        size = at - begin - 1
        has_escapes = memchr(begin, 0x5C, size) != NULL
        if has_escapes and _has_half(begin, begin + size):
            return NULL
        if part.words >= 0 and self._place_of(part.word_slots_at, part.word_slots, part.words_at, begin, size) < 0:
            return NULL
        # A character takes at least a byte, and an escape is longer than its character.
        if size > part.max_length or part.min_length > 0:
            if has_escapes:
                return NULL
            size = _characters(begin, size)
            if size > part.max_length or size < part.min_length:
                return NULL
        return at


cdef inline uint64_t _slots_for(int count) noexcept:
    # Return the highest index of a table of slots. The size is a power of two, and at most half of the slots are used.
    cdef uint64_t slots = 1
    while count > 0 and slots < 2 * <uint64_t>count:
        slots *= 2
    return slots - 1


cdef inline bint _is_name(const Name *name, const uint8_t *key, int64_t size) noexcept:
    return name.size == size and memcmp(name.at, key, size) == 0


cdef inline uint64_t _hash(const uint8_t *key, int64_t size) noexcept:
    # FNV-1a with the high bits mixed into the low ones.
    cdef uint64_t value = 14695981039346656037u
    cdef int64_t at
    for at in range(size):
        value = (value ^ key[at]) * 1099511628211u
    return value ^ value >> 32


cdef inline bint _has_half(const uint8_t *at, const uint8_t *end) noexcept:
    # Surrogates \ud800 to \udfff, paired or not. In well-formed text all escapes are complete.
    while at < end:
        if at[0] != 0x5C:
            at += 1
        elif at[1] == 0x75 and (at[2] | 0x20) == 0x64 and not 0x30 <= at[3] <= 0x37:
            return True
        else:
            at += 2
    return False


cdef inline int64_t _characters(const uint8_t *at, int64_t size) noexcept:
    cdef int64_t count = 0, i
    for i in range(size):
        count += (at[i] & 0xC0) != 0x80
    return count


cdef inline const uint8_t *_behind_bounded(const uint8_t *at, const uint8_t *end, const Part *part) noexcept:
    # Return whether the number has no exponent, few digits before its point, and is certainly within the bounds.
    cdef const uint8_t *whole = behind_integer(at, end)
    cdef const uint8_t *begin = at
    cdef bint is_negative = at[0] == 0x2D
    cdef int64_t least = 0, most
    if whole == NULL or whole - at > _MOST_DIGITS:
        return NULL
    at += is_negative
    while at < whole:
        least = least * 10 + at[0] - 0x30
        at += 1
    if whole == end or (whole[0] != 0x2E and (whole[0] | 0x20) != 0x65):
        if not part.types & _INTEGER:
            return NULL
        if is_negative:
            least = -least
        return whole if part.least <= least <= part.most else NULL
    if not part.types & _NUMBER:
        return NULL
    at = behind_number(begin, end)
    if at == NULL or memchr(whole, 0x65, at - whole) != NULL or memchr(whole, 0x45, at - whole) != NULL:
        return NULL
    most = least + 1
    if is_negative:
        least, most = -most, -least
    return at if part.least <= least and most <= part.most else NULL
