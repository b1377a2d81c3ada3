"""Rewrites errors of the CEL runtime, because the runtime quotes values from the record."""

import re
from typing import Final, NamedTuple

from sluicegate.validation.rules.cel.cost import MOST_ITERATIONS

_LACKS = "the record lacks a field that the expression reads"
_UNUSABLE = "the record has a value of a type or size that the expression cannot use"
_MISSING_KEY = re.compile(r'NOT_FOUND: Key not found in map : "(.{1,100})"')
_OVERLOAD: Final = re.compile(r"UNKNOWN: No matching overloads found : ([-\w<>=!+*/%&|?.\[\]@:() ,]{1,100})")
_OPERATOR: Final = re.compile(r"_?(@in|[-<>=!+*/%&|]{1,2})_?\(([^,()]*)(?:, ([^,()]*))?\)")
_METHOD: Final = re.compile(r"\(([^,()]*)\)\.")
_NAMED_METHOD: Final = re.compile(r"\([^,()]*\)\.(\w+)")
_INDEX: Final = re.compile(r"_\[_\]\(([^,()]*), ([^,()]*)\)")
_OF_LISTS: Final = {
    "<iter_range>": "a loop over a value that is not a list or map",
    "@in": "`in` with a value that is not a list or map",
}
_PATH: Final = r"(?<![.\w])[A-Za-z_]\w*(?:\.\w+(?!\w|\s*\()|\[(?:'[^']*'|\"[^\"]*\"|\d+)\])*(?!\w|\s*\()"
_OPERAND: Final = rf"(?:{_PATH}|(?<![.\w])\d[\w.]*|'[^']*'|\"[^\"]*\"|\[[^\[\]]*\])"
_LOOP: Final = rf"{_PATH}(?=\.(?:all|exists|exists_one|map|filter)\()"
_TYPE: Final = r"\b(?:int|uint|double|string|bytes|bool|timestamp|duration)\("


class _Part(NamedTuple):
    """The failing part of an expression. It matches `pattern` if the expression has exactly one part with `sign`."""

    pattern: str
    sign: str


_CONVERSION: Final = _Part(rf"{_TYPE}{_PATH}\)", rf"{_TYPE}(?![\d'\"])")
_KINDS: Final = (
    (re.compile(r"(?:divide|modulus) by zero$"), "division by zero", _Part(rf"(?<=[/%])\s*{_PATH}", "[/%]")),
    (
        re.compile(r"overflow$"),
        "a number overflows",
        _Part(rf"{_OPERAND}\s*[-+*/]\s*{_OPERAND}", "[-+*/]"),
    ),
    (re.compile(r"out of \w+ range$"), "a number is out of range", _CONVERSION),
    (
        re.compile(r"Applying SELECT to non-message type$"),
        "a field of a value that is not an object",
        _Part(r"(?<![.\w])\w+(?:\.\w+){2,}", r"\w\s*\.\s*\w+\s*\.\s*\w"),
    ),
    (re.compile(r"Index error: "), "an index out of range", _Part(rf"{_PATH}(?<=\])", r"\[")),
    (re.compile(r"cannot convert \w+ to \w+$"), "a conversion fails", _CONVERSION),
    (re.compile(r"String to \w+ conversion failed$"), "a conversion fails", _CONVERSION),
    (
        re.compile(r"invalid regular expression: "),
        "a pattern that is not a regular expression",
        _Part(rf"(?<=matches\(){_PATH}", r"matches\("),
    ),
)


def readable_error(error: str, expression: str) -> str:
    """Return the rewritten error. It takes names from the expression and types from the overload."""
    if "Iteration budget exceeded" in error[:100]:
        return f"too costly to validate: {MOST_ITERATIONS:,} items or more for the loops"
    missing = _MISSING_KEY.fullmatch(error)
    if missing is not None and missing[1] in expression:
        return f"{_LACKS} (field {missing[1]})"
    if error.startswith("NOT_FOUND"):
        return _LACKS
    overload = _OVERLOAD.fullmatch(error)
    if overload is not None:
        operation = _not_defined(overload[1])
        return f"{_UNUSABLE} ({operation}{_place(_part_of(overload[1]), expression)})"
    for pattern, kind, part in _KINDS:
        if pattern.search(error[:200]):
            return f"{_UNUSABLE} ({kind}{_place(part, expression)})"
    return _UNUSABLE


def _place(part: _Part | None, expression: str) -> str:
    """Return the failed part of the expression, after a colon; an empty string if several parts may have failed."""
    if part is None or len(re.findall(part.sign, expression)) != 1:
        return ""
    found = re.search(part.pattern, expression)
    return "" if found is None else f": {found[0].strip()}"


def _part_of(overload: str) -> _Part | None:
    """Return the part of an expression to which an overload refers, or None if it is unknown."""
    operator, method = _OPERATOR.fullmatch(overload), _NAMED_METHOD.match(overload)
    if overload == "<iter_range>":
        return _Part(_LOOP, r"\.(?:all|exists|exists_one|map|filter)\(")
    if overload.startswith("@in"):
        return _Part(rf"{_OPERAND}\s+in\s+{_OPERAND}", r"\sin\s")
    if operator is not None:
        sign = re.escape(operator[1]) + (r"(?!=)" if operator[1] in "<>!" else "")
        is_unary = operator[3] is None
        return _Part(rf"{sign}\s*{_PATH}" if is_unary else rf"{_OPERAND}\s*{sign}\s*{_OPERAND}", sign)
    if method is not None:
        return _Part(rf"{_PATH}\.{method[1]}(?=\()", rf"\.{method[1]}\(")
    return None


def _not_defined(overload: str) -> str:
    """Return the message that the runtime lacks an operation, with the types as an expression writes them."""
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
