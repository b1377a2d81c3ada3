"""Rewrites errors of the CEL runtime, because the runtime quotes values of the record."""

import re
from typing import Final

from sluicegate.validation.rules.cel.cost import MOST_ITERATIONS

_LACKS = "the record lacks what the expression asks for"
_UNUSABLE = "the record has something of another type or size than the expression can use"
_MISSING_KEY = re.compile(r'NOT_FOUND: Key not found in map : "(.{1,100})"')
_OVERLOAD: Final = re.compile(r"UNKNOWN: No matching overloads found : ([-\w<>=!+*/%&|?.\[\]@:() ,]{1,100})")
_KINDS: Final = (
    (re.compile(r"(?:divide|modulus) by zero$"), "division by zero"),
    (re.compile(r"overflow$"), "a number overflows"),
    (re.compile(r"out of \w+ range$"), "a number is out of range"),
    (re.compile(r"Applying SELECT to non-message type$"), "a field of something that is no object"),
    (re.compile(r"Index error: "), "an index out of range"),
    (re.compile(r"cannot convert \w+ to \w+$"), "a conversion fails"),
    (re.compile(r"String to \w+ conversion failed$"), "a conversion fails"),
    (re.compile(r"invalid regular expression: "), "a pattern that is no regular expression"),
)


def words_for(error: str, expression: str) -> str:
    """Return the text. Names are taken from the expression, and types from an overload."""
    if "Iteration budget exceeded" in error[:100]:
        return f"too costly to validate: {MOST_ITERATIONS:,} items or more for the loops"
    missing = _MISSING_KEY.fullmatch(error)
    if missing is not None and missing[1] in expression:
        return f"{_LACKS} (field {missing[1]})"
    if error.startswith("NOT_FOUND"):
        return _LACKS
    overload = _OVERLOAD.fullmatch(error)
    if overload is not None:
        return f"{_UNUSABLE} (types {overload[1]})"
    for pattern, kind in _KINDS:
        if pattern.search(error[:200]):
            return f"{_UNUSABLE} ({kind})"
    return _UNUSABLE
