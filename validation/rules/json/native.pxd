# Readers of the parts of a JSON text (RFC 8259, strict UTF-8), for compiled code only.
#
# Each function gets the start of a part and the end of the text, and returns the end of the part, or NULL if the part
# is malformed. sluicegate.validation.rules.json.text finds the reason.
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcmp

cdef extern from *:
    """
    #ifndef SLUICEGATE_JSON_PIECES
    #define SLUICEGATE_JSON_PIECES
    #include <stdint.h>
    #include <string.h>
    #if defined(__SSE2__)
    #include <emmintrin.h>
    #endif

    /* The first byte that does not stand for itself in a string (a quote, a backslash, a control, or one of a character
       of several bytes); `end` where there is none. */
    static inline const uint8_t *sg_behind_plain(const uint8_t *at, const uint8_t *end) {
    #if defined(__SSE2__)
        const __m128i quote = _mm_set1_epi8(0x22), backslash = _mm_set1_epi8(0x5C), space = _mm_set1_epi8(0x20);
        while (end - at >= 16) {
            __m128i bytes = _mm_loadu_si128((const __m128i *)at);
            /* As signed numbers, bytes from 0x80 on are less than a space, too. */
            __m128i odd = _mm_or_si128(
                _mm_cmplt_epi8(bytes, space),
                _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)));
            int found = _mm_movemask_epi8(odd);
            if (found) return at + __builtin_ctz((unsigned)found);
            at += 16;
        }
    #else
        while (end - at >= 8) {
            uint64_t bytes, ones = 0x0101010101010101u, highs = 0x8080808080808080u;
            memcpy(&bytes, at, 8);
            uint64_t quote = bytes ^ (ones * 0x22), backslash = bytes ^ (ones * 0x5C);
            uint64_t odd = (bytes - ones * 0x20) | ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash) | bytes;
            if (odd & highs) break;  /* one of these, or a byte before which one is */
            at += 8;
        }
    #endif
        while (at < end && *at >= 0x20 && *at < 0x80 && *at != 0x22 && *at != 0x5C) at++;
        return at;
    }

    /* Behind a character of several bytes (RFC 3629). */
    static inline const uint8_t *sg_behind_character(const uint8_t *at, const uint8_t *end) {
        uint8_t first = *at;
        Py_ssize_t left = end - at;
        if (first < 0xC2) return NULL;
        if (first < 0xE0) return left >= 2 && (at[1] & 0xC0) == 0x80 ? at + 2 : NULL;
        if (first < 0xF0) {
            if (left < 3 || (at[1] & 0xC0) != 0x80 || (at[2] & 0xC0) != 0x80) return NULL;
            if ((first == 0xE0 && at[1] < 0xA0) || (first == 0xED && at[1] > 0x9F)) return NULL;
            return at + 3;
        }
        if (first > 0xF4 || left < 4) return NULL;
        if ((at[1] & 0xC0) != 0x80 || (at[2] & 0xC0) != 0x80 || (at[3] & 0xC0) != 0x80) return NULL;
        if ((first == 0xF0 && at[1] < 0x90) || (first == 0xF4 && at[1] > 0x8F)) return NULL;
        return at + 4;
    }

    static inline int sg_is_hex(uint8_t byte) {
        return (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'f');
    }

    static inline const uint8_t *sg_behind_escape(const uint8_t *at, const uint8_t *end) {
        if (end - at < 2) return NULL;
        switch (at[1]) {
        case 0x22: case 0x5C: case '/': case 'b': case 'f': case 'n': case 'r': case 't':
            return at + 2;
        case 'u':
            if (end - at < 6) return NULL;
            return sg_is_hex(at[2]) && sg_is_hex(at[3]) && sg_is_hex(at[4]) && sg_is_hex(at[5]) ? at + 6 : NULL;
        default:
            return NULL;
        }
    }

    /* From behind the opening quote to behind the closing one. */
    static inline const uint8_t *sg_behind_string(const uint8_t *at, const uint8_t *end) {
        while (1) {
            at = sg_behind_plain(at, end);
            if (at == end) return NULL;
            if (*at == 0x22) return at + 1;
            if (*at == 0x5C) {
                if ((at = sg_behind_escape(at, end)) == NULL) return NULL;
            } else if (*at < 0x80) {
                return NULL;
            } else {
                /* One of them seldom comes alone. */
                do {
                    if ((at = sg_behind_character(at, end)) == NULL) return NULL;
                } while (at < end && *at >= 0x80);
            }
        }
    }

    /* Whether all of it is UTF-8. */
    static inline int sg_is_text(const uint8_t *at, const uint8_t *end) {
        uint64_t eight;
        while (at < end) {
            while (end - at >= 8 && (memcpy(&eight, at, 8), (eight & 0x8080808080808080u) == 0)) at += 8;
            if (at == end) return 1;
            if (*at < 0x80) at++;
            else if ((at = sg_behind_character(at, end)) == NULL) return 0;
        }
        return 1;
    }
    #endif
    """
    const uint8_t *behind_string "sg_behind_string"(const uint8_t *at, const uint8_t *end) noexcept nogil
    bint is_text "sg_is_text"(const uint8_t *at, const uint8_t *end) noexcept nogil


cdef inline const uint8_t *behind_blanks(const uint8_t *at, const uint8_t *end) noexcept nogil:
    # Never NULL.
    while at < end and at[0] <= 0x20 and (at[0] == 0x20 or at[0] == 0x0A or at[0] == 0x0D or at[0] == 0x09):
        at += 1
    return at


cdef inline const uint8_t *_behind_digits(const uint8_t *at, const uint8_t *end) noexcept nogil:
    while at < end and 0x30 <= at[0] <= 0x39:
        at += 1
    return at


cdef inline const uint8_t *behind_integer(const uint8_t *at, const uint8_t *end) noexcept nogil:
    # The part of a number before a point or an exponent.
    cdef const uint8_t *begin
    if at[0] == 0x2D:
        at += 1
    begin = at
    at = _behind_digits(at, end)
    if at == begin or (begin[0] == 0x30 and at - begin > 1):
        return NULL
    return at


cdef inline const uint8_t *behind_number(const uint8_t *at, const uint8_t *end) noexcept nogil:
    cdef const uint8_t *begin
    at = behind_integer(at, end)
    if at == NULL:
        return NULL
    if at < end and at[0] == 0x2E:
        begin = at + 1
        at = _behind_digits(begin, end)
        if at == begin:
            return NULL
    if at < end and (at[0] | 0x20) == 0x65:
        at += 1
        if at < end and (at[0] == 0x2B or at[0] == 0x2D):
            at += 1
        begin = at
        at = _behind_digits(begin, end)
        if at == begin:
            return NULL
    return at


cdef inline const uint8_t *behind_word(const uint8_t *at, const uint8_t *end) noexcept nogil:
    # true, false or null
    if end - at >= 4 and (memcmp(at, b"true", 4) == 0 or memcmp(at, b"null", 4) == 0):
        return at + 4
    if end - at >= 5 and memcmp(at, b"false", 5) == 0:
        return at + 5
    return NULL


cdef inline const uint8_t *behind_key(const uint8_t *at, const uint8_t *end) noexcept nogil:
    # Read a key and its colon, with blanks around both, and return the start of the value.
    at = behind_blanks(at, end)
    if at == end or at[0] != 0x22:
        return NULL
    at = behind_string(at + 1, end)
    if at == NULL:
        return NULL
    at = behind_blanks(at, end)
    if at == end or at[0] != 0x3A:
        return NULL
    return behind_blanks(at + 1, end)


cdef bint is_json(const uint8_t *at, const uint8_t *end, int max_depth) noexcept nogil


cdef struct Name:
    const uint8_t *at
    int64_t size
    int part
    uint64_t bit


cdef struct Part:
    # plan.SchemaPart as a C struct.
    int types
    int64_t least
    int64_t most
    int64_t min_length
    int64_t max_length
    int64_t min_items
    int64_t max_items
    int items
    int additional
    uint64_t required
    int names_at
    int names
    int slots_at  # names by their hashes; -1 is a free slot
    uint64_t slots  # the number of slots minus one
    int words_at
    int words  # -1: any
    int word_slots_at  # the same for words
    uint64_t word_slots


cdef class OrdinaryJsonSchema:
    cdef object _held
    cdef Part *_parts
    cdef Name *_names
    cdef int *_slots
    cdef int _root
    cdef readonly int longest_run

    cdef void _fill_slots(self, int slots_at, uint64_t last, int names_at, int count) noexcept
    cdef int _place_of(self, int slots_at, uint64_t last, int names_at, const uint8_t *key, int64_t size) noexcept
    cdef bint follows(self, const uint8_t *at, const uint8_t *end) noexcept
    cdef const uint8_t *_value(self, const uint8_t *at, const uint8_t *end, int place, int depth) noexcept
    cdef const uint8_t *_object(self, const uint8_t *at, const uint8_t *end, const Part *part, int depth) noexcept
    cdef const uint8_t *_array(self, const uint8_t *at, const uint8_t *end, const Part *part, int depth) noexcept
    cdef const uint8_t *_string(self, const uint8_t *at, const uint8_t *end, const Part *part) noexcept
