"""How much is made of a JSON text by readers that make objects of it: bounded before one of them begins.

A text of eight million bytes may be four million numbers, or empty lists. To make so many takes up to a second, in
which nobody else has the interpreter, and hundreds of MiB. Compiled with the types in json_weight.pxd where a C
compiler was at hand.
"""

MOST_WEIGHT = 500_000
"""A list or an object weighs ten, a key five, any other item one: at most some 20 ms until others go on."""

_OF_CONTAINER, _OF_KEY = 10, 5
_OPENS_LIST, _OPENS_OBJECT, _COLON, _COMMA, _QUOTE, _BACKSLASH = 0x5B, 0x7B, 0x3A, 0x2C, 0x22, 0x5C


def words_for_more_than(most: int) -> str:
    """What is said of a text that is too heavy."""
    return f"JSON of more items than this rule reads ({most:,}, of which lists and objects count ten each, keys five)"


def is_too_heavy(text: bytes, most: int = MOST_WEIGHT) -> bool:
    """Whether a well-formed JSON text weighs more than `most`."""
    size = len(text)
    return size * _OF_CONTAINER > most and _weighs_more(text, size, most)


def _weighs_more(data: bytes, end: int, most: int) -> bool:
    weight = at = 0
    while at < end and weight <= most:
        byte = data[at]
        at += 1
        if byte == _QUOTE:
            while at < end and data[at] != _QUOTE:
                at += 2 if data[at] == _BACKSLASH else 1
            at += 1
        elif byte == _COMMA:
            weight += 1
        elif byte == _COLON:
            weight += _OF_KEY
        elif byte in (_OPENS_LIST, _OPENS_OBJECT):
            weight += _OF_CONTAINER
    return weight > most
