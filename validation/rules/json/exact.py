"""Reads JSON texts that fast readers reject or round (RFC 8259, 7 and 8.2).

These contain numbers beyond 64 bits, or half of a surrogate pair.
"""

import json
import re
from decimal import Decimal
from typing import Any, Final

# jsonschema-rs compares decimals exactly, in time that grows with the exponent. Beyond this exponent only the size of a
# number matters: schemas have no numbers with so many digits.
_MOST_EXPONENT: Final = 4000
_FEW_DIGITS: Final = 19
_EXPONENT_DIGITS: Final = 9
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_HALVES, _PRIVATE = 0xD800, 0x10F800


def exact_value(text: bytes) -> Any:
    """Return the value of a well-formed text, with a Decimal for each number that does not fit 64 bits.

    Raises RecursionError for about a thousand levels.
    """
    return json.loads(without_surrogate_halves(text).decode(), parse_int=exact_number, parse_float=exact_number)


def without_surrogate_halves(text: bytes) -> bytes:
    """Replace each half of a surrogate pair by its own private character, because UTF-8 cannot encode halves."""
    return _ESCAPE.sub(_replaced, text)


def _replaced(found: re.Match[bytes]) -> bytes:
    if found[1] is None:
        return found[0]
    above = _PRIVATE + int(found[1], 16) - _HALVES - 0x10000
    return b"\\u%04x\\u%04x" % (0xD800 + (above >> 10), 0xDC00 + (above & 0x3FF))


def exact_number(text: str) -> int | float | Decimal:
    """Return a JSON number, exactly if it is beyond 64 bits, otherwise as fast readers do."""
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
        return Decimal(text)  # draft 4 has no integers with an exponent
    return Decimal(f"{sign}{stripped}E{max(-_MOST_EXPONENT, min(_MOST_EXPONENT, power))}")


def _power(exponent: str) -> int:
    sign = -1 if exponent.startswith("-") else 1
    digits = exponent.lstrip("+-").lstrip("0")
    return sign * (int(digits or "0") if len(digits) <= _EXPONENT_DIGITS else 10**_EXPONENT_DIGITS)
