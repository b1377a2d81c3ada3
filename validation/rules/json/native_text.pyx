"""Says of bytes that they are one JSON text, as `sluicegate.validation.rules.json.text` has it, or says nothing.

Native, and an order faster than what tells where a fault is and which: strings, which are most of JSON, are passed 16
bytes at a time. What is not called JSON here may be JSON all the same.
"""

from libc.stdint cimport uint8_t

from sluicegate.validation.rules.json.pieces cimport behind_blanks, behind_key, behind_number, behind_string, behind_word

cdef enum:
    # Levels within each other that are remembered; configuration allows fewer.
    _DEEPEST = 512


def is_ordinary(bytes text, int max_depth):
    """Whether it is JSON in which at most `max_depth` arrays and objects lie within each other; False: look closer."""
    cdef const uint8_t *at = text
    return is_json(at, at + len(text), max_depth)


cdef bint is_json(const uint8_t *at, const uint8_t *end, int max_depth) noexcept nogil:
    cdef uint8_t[_DEEPEST] closing
    cdef int depth = 0
    cdef uint8_t byte
    if max_depth > _DEEPEST:
        max_depth = _DEEPEST
    at = behind_blanks(at, end)
    while True:
        # A value stands here.
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
            # Behind a value.
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
