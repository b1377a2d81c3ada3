"""Reads JSON that fast readers reject or round (RFC 8259, sections 7 and 8.2).

Such JSON contains numbers beyond 64 bits, or half of a surrogate pair.
"""

import json
import re
from decimal import Decimal
from typing import Any, Final

# jsonschema-rs compares decimals exactly, in a time that grows with the exponent. Beyond this exponent only a number's
# magnitude matters, because schemas contain no numbers with so many digits.
_MOST_EXPONENT: Final = 4000
_FEW_DIGITS: Final = 19
_EXPONENT_DIGITS: Final = 9
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_HALVES, _PRIVATE = 0xD800, 0x10F800


def exact_value(text: bytes) -> Any:
    """Return the value of well-formed JSON, with a Decimal for each number that does not fit into 64 bits.

    Raises RecursionError at about a thousand levels.
    """
    return json.loads(without_surrogate_halves(text).decode(), parse_int=exact_number, parse_float=exact_number)


def without_surrogate_halves(text: bytes) -> bytes:
    """Replace each half of a surrogate pair with its own private-use character, because UTF-8 cannot encode halves."""
    return _ESCAPE.sub(_replaced, text)


def _replaced(found: re.Match[bytes]) -> bytes:
    if found[1] is None:
        return found[0]
    above = _PRIVATE + int(found[1], 16) - _HALVES - 0x10000
    return b"\\u%04x\\u%04x" % (0xD800 + (above >> 10), 0xDC00 + (above & 0x3FF))


def exact_number(text: str) -> int | float | Decimal:
    """Return a JSON number: exactly if it is beyond 64 bits, and otherwise as fast readers do."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, point, fraction = mantissa.partition(".")
    if len(whole) < _FEW_DIGITS and len(exponent.lstrip("+-")) < 3:
        return float(text) if point or exponent else int(text)
    sign = "-" if whole.startswith("-") else ""
    digits = whole.removeprefix("-") + fraction
    stripped = digits.rstrip("0")
    if not stripped:
        return 0
    power = _power(exponent) - len(fraction) + len(digits) - len(stripped)
    if not point and not exponent and power <= _MOST_EXPONENT:
        return Decimal(text)  # in draft 4, integers have no exponents
    return Decimal(f"{sign}{stripped}E{max(-_MOST_EXPONENT, min(_MOST_EXPONENT, power))}")


def _power(exponent: str) -> int:
    sign = -1 if exponent.startswith("-") else 1
    digits = exponent.lstrip("+-").lstrip("0")
    return sign * (int(digits or "0") if len(digits) <= _EXPONENT_DIGITS else 10**_EXPONENT_DIGITS)
