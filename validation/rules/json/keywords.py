"""Computes what one schema's keywords cost in jsonschema-rs for one value, without the schemas that they apply.

Costs were measured with versions 0.50 and 0.60, in steps of 100 ns, and rounded up by a factor of two or more. The cost
of a regular expression is an upper bound of its time per byte, computed from the pattern, for an engine without
backtracking. If the regex crate cannot keep a table of states, it simulates an automaton whose states are the pattern's
characters, with expanded repetitions (https://docs.rs/regex/latest/regex/#untrusted-input). This takes O(states) per
byte.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, NamedTuple

_MOST_STATES = 1_000_000
_OF_CLASS = 4  # for \w, \p{L} or a set, because characters of several bytes have their own states
_CLASSES = frozenset("wWdDsSpPbB")
# Measured: at most 8 ns per state and byte, or 20 ns for a character class.
_STEPS_OF_STATE = 0.1
_LEAST_STEPS = 0.1


def steps_of_byte(pattern: str) -> float:
    """Return an upper bound of the steps (100 ns) per byte of a string."""
    return max(_LEAST_STEPS, states_of(pattern) * _STEPS_OF_STATE)


def states_of(pattern: str) -> int:
    """Return an estimate of a pattern's states. It is too low by at most a constant factor."""
    outer: list[tuple[int, int]] = []  # per open group: the states before it, and the states of its last part
    states = last = 0
    at, end = 0, len(pattern)
    while at < end:
        sign = pattern[at]
        at += 1
        if sign == "(":
            outer.append((states, last))
            states = last = 0
        elif sign == ")":
            inside = states + last + 1
            states, last = outer.pop() if outer else (0, 0)
            states, last = states + last, inside
        elif sign == "{":
            closing = pattern.find("}", at)
            last = min(last * _most_times(pattern[at:closing]), _MOST_STATES) if closing >= 0 else last + 1
            at = closing + 1 if closing >= 0 else at
        elif sign in "*+?":
            last += 1
        else:
            states, last = min(states + last, _MOST_STATES), 1
            if sign == "[":
                at = _behind_set(pattern, at)
                last = _OF_CLASS
            elif sign == "\\" and at < end:
                last = _OF_CLASS if pattern[at] in _CLASSES else 1
                at += 1
                if pattern[at - 1] in "pPuxk" and at < end and pattern[at] == "{":
                    at = pattern.find("}", at) + 1 or end
            elif sign == "." or sign > "\x7f":
                last = _OF_CLASS
    while outer:
        before, before_last = outer.pop()
        states += before + before_last
    return min(states + last + 1, _MOST_STATES)


def _most_times(counted: str) -> int:
    """Return the repetitions of {3}, {3,} or {3,5}. Return 1 for any other character."""
    least, _, most = counted.partition(",")
    numbers = [int(one) for one in (least, most) if one.isdecimal() and len(one) < 8]
    return max([1, *numbers]) + 1


def _behind_set(pattern: str, at: int) -> int:
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1


class Cost(NamedTuple):
    """The steps per item, per byte of its strings (keys count with their values), and per unit of its numbers."""

    items: float = 0.0
    bytes: float = 0.0
    numbers: float = 0.0

    def plus(self, other: "Cost", times: float = 1.0) -> "Cost":
        """Return the sum of this cost and `times` the other one."""
        return Cost(
            self.items + times * other.items, self.bytes + times * other.bytes, self.numbers + times * other.numbers
        )

    def most(self, other: "Cost") -> "Cost":
        """Return the maximum of each part."""
        return Cost(max(self.items, other.items), max(self.bytes, other.bytes), max(self.numbers, other.numbers))


NONE: Final = Cost()


@dataclass(frozen=True, slots=True)
class KeywordCosts:
    """The costs of one schema's keywords.

    `own` is for the value itself, `members` for each of its properties or items, and `inside` for all inner values.
    `error` and `error_inside` are the costs of the copies that all keywords' errors contain.
    """

    own: Cost
    members: Cost
    inside: Cost
    error: Cost
    error_inside: Cost


# Numbers are compared exactly. These are the costs per unit of the value (count.py) and per unit of the schema's
# number.
_COMPARED, _DIVIDED = 4.0, 6.0
_NESTED_NUMBER = 300.0  # for a number of any size that is compared within an enum's lists or objects
_MOST_DIGITS = 400
_COMPARISONS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_COUNTED: Final = ("minLength", "maxLength")
_FEW_PROPERTIES, _FEW_WORDS = 15, 10
_OF_NAME = 0.7
_FORMATS: Final = {"idn-hostname": Cost(15, 0.3), "idn-email": Cost(15, 0.3), "regex": Cost(30, 1.0)}
_OF_FORMAT: Final = Cost(10, 0.2)
_OF_CONTENT: Final = Cost(5, 0.5)
# Up to 15 items are compared pairwise; more items are compared by hash.
_UNIQUE: Final = Cost(8, 0.3, 56)
# An error contains copies of the value, of its path and of the keyword's value.
_OF_ERROR, _COPIED = 60.0, Cost(3, 0.05, 1)


def keyword_costs(schema: dict[str, Any]) -> KeywordCosts:
    """Return the cost of one schema. Raises ValueError if it contains a number that is too long."""
    own = Cost(1 + 0.5 * len(schema))
    if schema.keys().isdisjoint(_OF_THEIR_OWN):
        return KeywordCosts(own, NONE, NONE, Cost(_OF_ERROR * max(1, len(schema))), NONE.plus(_COPIED, len(schema) + 1))
    members = NONE
    inside = NONE
    for keyword in _COMPARISONS:
        if keyword in schema:
            own = own.plus(_against(schema[keyword], _COMPARED))
    if "multipleOf" in schema:
        own = own.plus(_against(schema["multipleOf"], _DIVIDED))
    if any(keyword in schema for keyword in _COUNTED):
        own = own.plus(Cost(1, 0.05))
    if isinstance(schema.get("pattern"), str):
        own = own.plus(Cost(3, steps_of_byte(schema["pattern"])))
    if isinstance(schema.get("format"), str):
        own = own.plus(_FORMATS.get(schema["format"], _OF_FORMAT))
    if "contentEncoding" in schema or "contentMediaType" in schema:
        own = own.plus(_OF_CONTENT)
    words = _words(schema)
    own = own.plus(_of_words(words))
    own = own.plus(Cost(_OF_NAME * sum(1 for _ in _names(schema))))
    properties = schema.get("properties")
    if isinstance(properties, dict):
        own = own.plus(Cost(_OF_NAME * min(len(properties), _FEW_PROPERTIES)))
        members = members.plus(Cost(2))
    members = members.plus(_of_patterns(schema.get("patternProperties")))
    if any(keyword in schema for keyword in _OF_MEMBERS):
        members = members.plus(Cost(2))
    if schema.get("uniqueItems") is True:
        inside = _UNIQUE
    error = Cost(_OF_ERROR * max(1, len(schema)) + 2 * _size(words))
    error_inside = NONE.plus(_COPIED, max(1, len(schema)))
    return KeywordCosts(own, members, inside, error, error_inside)


_OF_MEMBERS: Final = frozenset(
    {"additionalProperties", "propertyNames", "unevaluatedProperties", "unevaluatedItems", "items", "prefixItems"}
    | {"contains", "additionalItems"}
)
# The cost of a schema without any of these keywords depends only on its number of keywords.
_OF_THEIR_OWN: Final = frozenset(
    {*_OF_MEMBERS, *_COMPARISONS, *_COUNTED, "multipleOf", "pattern", "format", "contentEncoding", "contentMediaType"}
    | {"enum", "const", "properties", "patternProperties", "uniqueItems", "required", "dependentRequired"}
    | {"dependencies", "dependentSchemas"}
)


def units_of(number: int | float) -> float:
    """Return the units of a number in a schema, as in count.py. Raises ValueError if it is too long."""
    text = json.dumps(number)
    if len(text) > _MOST_DIGITS:
        raise ValueError
    return 1 + len(text) / 4 + 4 * ("." in text) + 8 * ("e" in text) + 64 * ("e-" in text)


def _against(given: Any, steps: float) -> Cost:
    if isinstance(given, Decimal):
        raise ValueError
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    return Cost(1, 0, steps * (1 + units_of(given))) if is_number else NONE


def _of_patterns(patterns: Any) -> Cost:
    """Return the cost of patterns.

    Each pattern is matched against every key twice: for its own schema, and for additional properties.
    """
    cost = NONE
    for pattern in patterns if isinstance(patterns, dict) else ():
        cost = cost.plus(Cost(3, 2 * steps_of_byte(pattern)))
    return cost


def _words(schema: dict[str, Any]) -> list[Any]:
    words = schema.get("enum")
    return [*(words if isinstance(words, list) else []), *([schema["const"]] if "const" in schema else [])]


def _of_words(words: list[Any]) -> Cost:
    if len(words) > _FEW_WORDS and all(isinstance(word, str) for word in words):
        return Cost(3, 0.05)
    cost = NONE
    for word in words:
        if isinstance(word, str):
            cost = cost.plus(Cost(0.3 + len(word) / 300))
        elif isinstance(word, list | dict):
            cost = cost.plus(Cost(_size(word)))
        else:
            cost = cost.plus(Cost(0.3)).plus(_against(word, _COMPARED))
    return cost


def _size(word: Any) -> float:
    """Return the steps to compare a value with one of the schema's constants, or to copy the constant."""
    size = 0.0
    waiting = [word]
    while waiting:
        part = waiting.pop()
        size += 1.0
        if isinstance(part, dict):
            size += sum(1 + len(key) / 300 for key in part)
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
        elif isinstance(part, str):
            size += len(part) / 300
        elif isinstance(part, Decimal):
            raise ValueError
        elif isinstance(part, int | float) and not isinstance(part, bool):
            units_of(part)
            size += _NESTED_NUMBER
    return size


def _names(schema: dict[str, Any]) -> Iterator[Any]:
    """Yield the names that are looked up in an object."""
    required = schema.get("required")
    yield from required if isinstance(required, list) else ()
    for keyword in ("dependentRequired", "dependencies", "dependentSchemas"):
        named = schema.get(keyword)
        for others in named.values() if isinstance(named, dict) else ():
            yield None
            yield from others if isinstance(others, list) else ()
