"""Checks strict UTF-8 (RFC 3629): characters in their shortest form, no surrogates, nothing beyond U+10FFFF.

Compiled with the types in strict_utf8.pxd if a C compiler is installed.
"""


def behind_character(data: bytes, at: int, end: int) -> int:
    """Return the end of the multi-byte character at `at`, or -1 if it is malformed or extends beyond `end`."""
    first = data[at]
    least = 0x80
    most = 0xBF
    if 0xC2 <= first <= 0xDF:
        size = 2
    elif 0xE0 <= first <= 0xEF:
        size = 3
        if first == 0xE0:
            least = 0xA0
        elif first == 0xED:
            most = 0x9F
    elif 0xF0 <= first <= 0xF4:
        size = 4
        if first == 0xF0:
            least = 0x90
        elif first == 0xF4:
            most = 0x8F
    else:
        return -1
    if size > end - at or data[at + 1] < least or data[at + 1] > most:
        return -1
    place = at + 2
    while place < at + size:
        if data[place] & 0xC0 != 0x80:
            return -1
        place += 1
    return at + size


def is_text(data: bytes, at: int, end: int) -> bool:
    """Return whether the bytes from `at` to `end` are UTF-8."""
    while at < end:
        if end - at >= 32 and _is_ascii(data, at):
            at += 32
            continue
        stop = min(at + 32, end)
        while at < stop:
            if data[at] < 0x80:
                at += 1
            else:
                at = behind_character(data, at, end)
                if at < 0:
                    return False
    return True


def _is_ascii(data: bytes, at: int) -> bool:
    """Return whether the next 32 bytes are ASCII. C compilers vectorize this loop."""
    bits = 0
    place = 0
    while place < 32:
        bits |= data[at + place]
        place += 1
    return bits < 0x80
