"""Finds the first fault in JSON (RFC 8259) in strict UTF-8, in one pass and without allocations.

It is stricter than most parsers, because consumers use many different ones: it accepts no NaN, comments, byte order
mark, trailing bytes or malformed UTF-8. Compiled with the types in text.pxd if a C compiler is installed.
"""

from enum import IntEnum
from typing import Final

from sluicegate.validation.rules.strict_utf8 import behind_character


class JsonFault(IntEnum):
    """The reason why bytes are not JSON."""

    EMPTY = 1
    ENDS_EARLY = 2
    NO_VALUE = 3
    NO_KEY = 4
    NO_COLON = 5
    NO_COMMA = 6
    LEFT_OVER = 7
    TOO_DEEP = 8
    CONTROL_CHARACTER = 9
    BAD_ESCAPE = 10
    NOT_UTF8 = 11
    BAD_NUMBER = 12
    BYTE_ORDER_MARK = 13


WELL_FORMED = -1
_WELL_FORMED = WELL_FORMED  # typed in the .pxd, which hides a name from other modules
_FAULT_BITS = 4

# The tokens that may follow.
_VALUE, _VALUE_OR_END, _KEY_OR_END, _KEY, _COLON, _BEHIND_VALUE = 0, 1, 2, 3, 4, 5

# Copies with C types.
_EMPTY, _ENDS_EARLY, _NO_VALUE, _NO_KEY, _NO_COLON, _NO_COMMA = 1, 2, 3, 4, 5, 6
_LEFT_OVER, _TOO_DEEP, _CONTROL, _BAD_ESCAPE, _NOT_UTF8, _BAD_NUMBER, _BYTE_ORDER_MARK = 7, 8, 9, 10, 11, 12, 13

_WORD_BITS = 63  # nesting is stored in words, with one bit per level, which is set for an object

_DIGITS = 19  # the digits of any integer below 2^64
_LEAST = b"9223372036854775808"

_TRUE, _FALSE, _NULL = b"true", b"false", b"null"
# The bytes that need no escape in a string.
_PLAIN_OR_HIGH = bytes(int(byte not in b'"\\') for byte in range(256))
# The bytes that begin neither a string nor a number.
_DULL = bytes(int(byte not in b'"-0123456789') for byte in range(256))
_PLAIN = bytes(int(0x20 <= byte < 0x80 and byte not in b'"\\') for byte in range(256))


def fault_in(text: bytes, max_depth: int) -> int:
    """Return WELL_FORMED, or the first fault, from which `fault_position` and `fault_kind` extract the parts.

    `max_depth` is the nesting limit of arrays and objects.
    """
    plain = _PLAIN
    return _first_fault(text, len(text), plain, max_depth)


def _first_fault(data: bytes, end: int, plain: bytes, max_depth: int) -> int:
    at = 0
    state = _VALUE
    depth = 0
    objects = 0  # the levels of the current word
    outer: list[int] = []  # the previous words
    if end >= 3 and data[0] == 0xEF and data[1] == 0xBB and data[2] == 0xBF:
        return _BYTE_ORDER_MARK
    while True:
        while at < end and (data[at] == 0x20 or data[at] == 0x0A or data[at] == 0x0D or data[at] == 0x09):
            at += 1
        if at == end:
            if depth == 0 and state == _BEHIND_VALUE:
                return _WELL_FORMED
            return end << _FAULT_BITS | (_ENDS_EARLY if depth > 0 else _EMPTY)
        byte = data[at]
        if state == _BEHIND_VALUE:
            if depth == 0:
                return at << _FAULT_BITS | _LEFT_OVER
            if byte == 0x2C:  # ,
                state = _KEY if objects & 1 else _VALUE
            elif byte == (0x7D if objects & 1 else 0x5D):
                depth -= 1
                objects >>= 1
                if depth > 0 and depth % _WORD_BITS == 0:
                    objects = outer.pop()
            else:
                return at << _FAULT_BITS | _NO_COMMA
            at += 1
        elif byte == 0x22:  # a string: a key or a value
            if state == _COLON:
                return at << _FAULT_BITS | _NO_COLON
            at = _behind_string(data, at + 1, end, plain)
            if at < 0:
                return -at
            state = _COLON if state in (_KEY_OR_END, _KEY) else _BEHIND_VALUE
        elif state == _COLON:
            if byte != 0x3A:
                return at << _FAULT_BITS | _NO_COLON
            at += 1
            state = _VALUE
        elif state in (_KEY_OR_END, _KEY):
            if byte != 0x7D or state == _KEY:
                return at << _FAULT_BITS | _NO_KEY
            depth -= 1
            objects >>= 1
            if depth > 0 and depth % _WORD_BITS == 0:
                objects = outer.pop()
            at += 1
            state = _BEHIND_VALUE
        elif byte in (0x7B, 0x5B):  # { [
            if depth == max_depth:
                return at << _FAULT_BITS | _TOO_DEEP
            if depth > 0 and depth % _WORD_BITS == 0:
                outer.append(objects)
                objects = 0
            depth += 1
            objects = objects << 1 | (byte == 0x7B)
            at += 1
            state = _KEY_OR_END if byte == 0x7B else _VALUE_OR_END
        elif byte == 0x5D and state == _VALUE_OR_END:
            depth -= 1
            objects >>= 1
            if depth > 0 and depth % _WORD_BITS == 0:
                objects = outer.pop()
            at += 1
            state = _BEHIND_VALUE
        else:
            at = _behind_number(data, at, end) if byte == 0x2D or 0x30 <= byte <= 0x39 else _behind_word(data, at, end)
            if at < 0:
                return -at
            state = _BEHIND_VALUE


def is_unusual(text: bytes) -> bool:
    """Return whether JSON contains half a surrogate pair, an integer beyond 64 bits, or a three-digit exponent.

    These are valid JSON, but fast readers reject or round them.
    """
    plain, dull = _PLAIN_OR_HIGH, _DULL
    return _has_unusual(text, len(text), plain, dull) != 0


def _has_unusual(data: bytes, end: int, plain: bytes, dull: bytes) -> int:
    at = 0
    while at < end:
        if dull[data[at]]:
            at += 1
        elif data[at] == 0x22:
            at = _behind_pairs(data, at + 1, end, plain)
        else:
            at = _behind_short_number(data, at, end)
        if at < 0:
            return 1
    return 0


def _behind_pairs(data: bytes, at: int, end: int, plain: bytes) -> int:
    """Return the end of the string, or a negative number if it contains half a surrogate pair."""
    while at < end:
        if plain[data[at]]:
            at += 1
            continue
        if data[at] == 0x22:
            return at + 1
        half = _half_at(data, at, end)
        if half == 0:
            at += 2
        elif half == 1 and _half_at(data, at + 6, end) == 2:
            at += 12
        else:
            return -1
    return at


def _half_at(data: bytes, at: int, end: int) -> int:
    """Return 1 or 2 if the first or second half of a surrogate pair is escaped here, otherwise 0."""
    if at + 6 > end or data[at] != 0x5C or data[at + 1] != 0x75 or (data[at + 2] | 0x20) != 0x64:
        return 0
    digit = data[at + 3] | 0x20
    if digit in (0x38, 0x39, 0x61, 0x62):
        return 1
    return 2 if 0x63 <= digit <= 0x66 else 0


def _behind_short_number(data: bytes, at: int, end: int) -> int:
    """Return the end of the number. Return a negative number if it is beyond 64 bits or has a three-digit exponent."""
    is_negative = data[at] == 0x2D
    if is_negative:
        at += 1
    begin = at
    at = _behind_digits(data, at, end)
    if at - begin > _DIGITS or (is_negative and at - begin == _DIGITS and _is_beyond(data, begin)):
        return -1
    if at < end and data[at] == 0x2E:
        at = _behind_digits(data, at + 1, end)
    if at < end and (data[at] | 0x20) == 0x65:
        at += 1
        if at < end and (data[at] == 0x2B or data[at] == 0x2D):
            at += 1
        begin = at
        at = _behind_digits(data, at, end)
        if at - begin > 2:
            return -1
    return at


def _is_beyond(data: bytes, at: int) -> bool:
    """Return whether nineteen digits are more than 2^63."""
    least = _LEAST
    place = 0
    while place < _DIGITS:
        if data[at + place] != least[place]:
            return data[at + place] > least[place]
        place += 1
    return False


def fault_position(fault: int) -> int:
    """Return the number of well-formed bytes before the fault."""
    return fault >> _FAULT_BITS


def fault_kind(fault: int) -> JsonFault:
    """Return the kind of fault."""
    return JsonFault(fault & 0xF)


def _behind_string(data: bytes, at: int, end: int, plain: bytes) -> int:
    """Return the end of the string, or a negative number for a fault."""
    while at < end:
        byte = data[at]
        if plain[byte]:
            at += 1
        elif byte == 0x22:
            return at + 1
        elif byte == 0x5C:
            at = _behind_escape(data, at, end)
        elif byte < 0x20:
            return -(at << _FAULT_BITS | _CONTROL)
        else:
            begin = at
            at = behind_character(data, at, end)
            if at < 0:
                return -(begin << _FAULT_BITS | _NOT_UTF8)
        if at < 0:
            return at
    return -(end << _FAULT_BITS | _ENDS_EARLY)


def _behind_escape(data: bytes, at: int, end: int) -> int:
    if at + 1 >= end:
        return -(end << _FAULT_BITS | _ENDS_EARLY)
    byte = data[at + 1]
    if byte == 0x75:  # u and four digits
        if at + 6 > end:
            return -(end << _FAULT_BITS | _ENDS_EARLY)
        place = at + 2
        while place < at + 6:
            digit = data[place]
            if not (0x30 <= digit <= 0x39 or 0x41 <= digit <= 0x46 or 0x61 <= digit <= 0x66):
                return -(at << _FAULT_BITS | _BAD_ESCAPE)
            place += 1
        return at + 6
    # " \ / b f n r t
    if byte in (0x22, 0x5C, 0x2F, 0x62, 0x66, 0x6E, 0x72, 0x74):
        return at + 2
    return -(at << _FAULT_BITS | _BAD_ESCAPE)


def _behind_number(data: bytes, at: int, end: int) -> int:
    begin = at
    if data[at] == 0x2D:
        at += 1
    digits = _behind_digits(data, at, end)
    if digits == at or (data[at] == 0x30 and digits > at + 1):
        return -(begin << _FAULT_BITS | _BAD_NUMBER)
    at = digits
    if at < end and data[at] == 0x2E:
        digits = _behind_digits(data, at + 1, end)
        if digits == at + 1:
            return -(begin << _FAULT_BITS | _BAD_NUMBER)
        at = digits
    if at < end and (data[at] == 0x65 or data[at] == 0x45):
        at += 1
        if at < end and (data[at] == 0x2B or data[at] == 0x2D):
            at += 1
        digits = _behind_digits(data, at, end)
        if digits == at:
            return -(begin << _FAULT_BITS | _BAD_NUMBER)
        at = digits
    return at


def _behind_digits(data: bytes, at: int, end: int) -> int:
    while at < end and 0x30 <= data[at] <= 0x39:
        at += 1
    return at


def _behind_word(data: bytes, at: int, end: int) -> int:
    """Return the end of true, false or null, or a negative number for a fault."""
    first = data[at]
    if first == 0x74:
        word = _TRUE
    elif first == 0x66:
        word = _FALSE
    elif first == 0x6E:
        word = _NULL
    else:
        return -(at << _FAULT_BITS | _NO_VALUE)
    size = 5 if first == 0x66 else 4
    place = 0
    while place < size:
        if at + place == end:
            return -(end << _FAULT_BITS | _ENDS_EARLY)
        if data[at + place] != word[place]:
            return -(at << _FAULT_BITS | _NO_VALUE)
        place += 1
    return at + size


_WHAT: Final = {
    JsonFault.EMPTY: "it is empty",
    JsonFault.ENDS_EARLY: "it ends before it is complete",
    JsonFault.NO_VALUE: "a value was expected",
    JsonFault.NO_KEY: "a key in double quotes was expected",
    JsonFault.NO_COLON: "a colon was expected",
    JsonFault.NO_COMMA: "a comma, or the end of the object or array, was expected",
    JsonFault.LEFT_OVER: "bytes follow the JSON; write exactly one value to a record",
    JsonFault.TOO_DEEP: "objects and arrays are nested deeper than the rule allows",
    JsonFault.CONTROL_CHARACTER: "a string has a control character; escape it",
    JsonFault.BAD_ESCAPE: "a string has an invalid escape",
    JsonFault.NOT_UTF8: "a string is not UTF-8; encode it as UTF-8",
    JsonFault.BAD_NUMBER: "a number is malformed",
    JsonFault.BYTE_ORDER_MARK: "it begins with a byte order mark; remove the mark",
}


def words_for(fault: int) -> str:
    """Return the message for a fault from `fault_in`: its kind and position, without content."""
    return f"not JSON: {_WHAT[fault_kind(fault)]} (at byte {fault_position(fault)})"
