"""Counts the items in JSON, and weighs items, string bytes and digits by depth, because readers' costs depend on it.

It makes one pass over the JSON, without allocations. Compiled with the types in count.pxd if a C compiler is installed.
"""

from array import array

DEEPEST = 255
"""Deeper levels are counted at this depth."""

_DEEPEST = DEEPEST  # typed in the .pxd, which hides a name from other modules
_LEVELS = 256
_THREE = 3
_RUN = 32
# In quarters of a unit. Exact readers (jsonschema-rs) take as long for 1e-300 as for 300 digits.
_OF_NUMBER, _OF_POINT, _OF_EXPONENT, _OF_NEGATIVE_EXPONENT = 4, 16, 32, 256


class JsonCount:
    """The number of items in some JSON. For malformed JSON, it is at least the number in the well-formed beginning.

    `levels` is the number of depths in use, `containers` counts lists and objects, and `keys` counts the keys in
    objects.
    """

    def __init__(self, text: bytes) -> None:
        self._counts = array("q", bytes(8 * _LEVELS))
        self._view = self._counts
        self.containers = 0
        self.keys = 0
        self.levels = 1
        self._deeper = 0
        self._count(text, len(text))

    def items(self, depth: int) -> int:
        """Return the number of values at a depth. The outermost value is at depth 0."""
        return self._counts[depth]

    def _count(self, data: bytes, end: int) -> None:
        at = 0
        depth = 0
        self._view[0] = 1
        while at < end:
            byte = data[at]
            at += 1
            if byte == 0x22:  # a string
                at = _end_of_string(data, at, end) + 1
            elif byte == 0x2C:  # ,
                self._view[depth] += 1
            elif byte == 0x3A:  # :
                self.keys += 1
            elif byte in (0x5B, 0x7B):  # [ {
                self.containers += 1
                if depth < _DEEPEST:
                    depth += 1
                    if depth == self.levels:
                        self.levels += 1
                else:
                    self._deeper += 1
                self._view[depth] += 1
            elif byte in (0x5D, 0x7D):  # ] }
                if depth == _DEEPEST and self._deeper > 0:
                    self._deeper -= 1
                elif depth > 0:
                    depth -= 1


def weighted_sum(text: bytes, weights: "array[float]", of_container: float, of_key: float) -> float:
    """Return the weighted sum of containers, keys, items, string bytes and numbers. Weights depend on the depth.

    `weights` contains three numbers per depth: per item, per byte of a string, and per unit of a number. The last three
    also apply to all deeper levels. A key has the depth of its value. A number has 1 unit, plus 1 per four digits, 4
    for a point, 8 for an exponent, and 64 for a negative exponent.
    """
    return _weighed(text, len(text), weights, len(weights) - _THREE, of_container, of_key)


def _weighed(data: bytes, end: int, weights: "array[float]", last: int, of_container: float, of_key: float) -> float:
    at = 0
    depth = 0
    level = 0
    before = 0
    in_number = False
    of_item = weights[0]
    of_byte = weights[1]
    of_quarter = weights[2] / _OF_NUMBER
    total = of_item
    while at < end:
        byte = data[at]
        at += 1
        if byte == 0x22:  # a string
            begin = at
            at = _end_of_string(data, at, end)
            total += of_byte * (at - begin)
            at += 1
            in_number = False
        elif 0x30 <= byte <= 0x39 or byte == 0x2D:  # a number
            if not in_number:
                total += of_quarter * _OF_NUMBER
                in_number = True
            elif byte == 0x2D and (before | 0x20) == 0x65:
                total += of_quarter * _OF_NEGATIVE_EXPONENT
            total += of_quarter
        elif in_number and byte == 0x2E:  # .
            total += of_quarter * _OF_POINT
        elif in_number and (byte | 0x20) == 0x65:
            total += of_quarter * _OF_EXPONENT
        elif byte == 0x2C:  # ,
            total += of_item
            in_number = False
        elif byte == 0x3A:  # :
            total += of_key
            in_number = False
        elif byte in (0x5B, 0x7B, 0x5D, 0x7D):
            in_number = False
            if byte in (0x5B, 0x7B):  # [ {
                depth += 1
                total += of_container
            elif depth > 0:
                depth -= 1
            level = min(depth * _THREE, last)
            of_item = weights[level]
            of_byte = weights[level + 1]
            of_quarter = weights[level + 2] / _OF_NUMBER
            if byte in (0x5B, 0x7B):  # [ {
                total += of_item
        before = byte
    return total


def _end_of_string(data: bytes, at: int, end: int) -> int:
    """Return the position of the closing quote, or `end` or more if there is none."""
    while at < end:
        if end - at >= _RUN and _is_plain(data, at):
            at += _RUN
            continue
        stop = min(at + _RUN, end)
        while at < stop:
            if data[at] == 0x22:
                return at
            at += 2 if data[at] == 0x5C else 1
    return at


def _is_plain(data: bytes, at: int) -> bool:
    """Return whether the next 32 bytes contain neither a quote nor a backslash. C compilers vectorize this loop."""
    bits = 0
    place = 0
    while place < 32:
        bits |= (data[at + place] == 0x22) | (data[at + place] == 0x5C)
        place += 1
    return bits == 0
