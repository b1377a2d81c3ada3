"""Rewrites errors of the CEL runtime, because the runtime quotes values of the record."""

import re
from typing import Final

from sluicegate.validation.rules.cel.cost import MOST_ITERATIONS

_LACKS = "the record lacks what the expression asks for"
_UNUSABLE = "the record has something of another type or size than the expression can use"
_MISSING_KEY = re.compile(r'NOT_FOUND: Key not found in map : "(.{1,100})"')
_OVERLOAD: Final = re.compile(r"UNKNOWN: No matching overloads found : ([-\w<>=!+*/%&|?.\[\]@:() ,]{1,100})")
_OPERATOR: Final = re.compile(r"_?(@in|[-<>=!+*/%&|]{1,2})_?\(([^,()]*)(?:, ([^,()]*))?\)")
_METHOD: Final = re.compile(r"\(([^,()]*)\)\.")
_INDEX: Final = re.compile(r"_\[_\]\(([^,()]*), ([^,()]*)\)")
_OF_LISTS: Final = {
    "<iter_range>": "a loop over something that is no list or map",
    "@in": "`in` with something that is no list or map",
}
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


def readable_error(error: str, expression: str) -> str:
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
        return f"{_UNUSABLE} ({_not_defined(overload[1])})"
    for pattern, kind in _KINDS:
        if pattern.search(error[:200]):
            return f"{_UNUSABLE} ({kind})"
    return _UNUSABLE


def _not_defined(overload: str) -> str:
    """Return that an operation of the runtime does not exist, with its types, as an expression has it."""
    if overload in _OF_LISTS:
        return _OF_LISTS[overload]
    text = overload.replace("int64", "int")
    index, found, method = _INDEX.fullmatch(text), _OPERATOR.fullmatch(text), _METHOD.match(text)
    if index is not None:
        text = f"{index[1]}[{index[2]}]"
    elif found is not None:
        operator, first, second = found.groups()
        text = f"{operator}{first}" if second is None else f"{first} {operator.removeprefix('@')} {second}"
    elif method is not None:
        text = f"{method[1]}.{text[method.end() :]}"
    return f"{text} is not defined"
