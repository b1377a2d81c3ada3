"""How deep JSON may lie for a schema that leads back to itself by several alternatives.

Each alternative looks at what lies below anew: two of them at each of twenty levels are a million looks at forty bytes.
So a value may lie only as deep as takes some ten thousands of looks.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

_MOST_LOOKS = 100_000
_MOST_WAYS = 64
_MOST_STEPS = 10_000
# In-place applicators (2020-12 core, 10.2), and those of older drafts: they look at the very same value.
_LISTS_IN_PLACE = ("allOf", "anyOf", "oneOf")
_ONE_IN_PLACE = ("not", "if", "then", "else")
_NAMED_IN_PLACE = ("dependentSchemas", "dependencies")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_OF_ITEMS = ("items", "prefixItems", "additionalItems", "contains", "unevaluatedItems")
_OF_ANY_PROPERTY = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_ITEMS, _ANY_PROPERTY = object(), object()

Schema = dict[str, Any]


def deepest_for(schema: Any, references: Mapping[str, Any], otherwise: int) -> int:
    """How many arrays and objects may lie within each other; `otherwise` where no alternatives multiply."""
    try:
        ways = _Recursion(schema, references).most_ways()
    except RecursionError:  # a schema that lies deeper than values may
        ways = _MOST_WAYS
    return otherwise if ways < 2 else min(otherwise, int(math.log(_MOST_LOOKS, ways)))


class _Recursion:
    def __init__(self, root: Any, references: Mapping[str, Any]) -> None:
        self._root = root
        self._references = references
        self._below: dict[int, frozenset[int]] = {}

    def most_ways(self) -> int:
        """By how many ways at most one schema looks at one and the same part of a value and comes back to itself."""
        return max((self._ways_of(part) for part in self._all()), default=0)

    def _ways_of(self, schema: Schema) -> int:
        found: Counter[object] = Counter()
        for place, below in islice(self._looked_at(schema, ()), _MOST_STEPS):
            if found.total() >= _MOST_WAYS:
                break
            if id(schema) in self._reached_from(below):
                found[place] += 1
        everywhere = found.pop(_ANY_PROPERTY, 0)
        of_items = found.pop(_ITEMS, 0)
        return max(of_items, everywhere + max(found.values(), default=0))

    def _looked_at(self, schema: Any, within: tuple[int, ...]) -> Iterator[tuple[object, Any]]:
        """Where in the value, and by which schema; once for each way there."""
        if not isinstance(schema, dict) or id(schema) in within:
            return
        yield from _children(schema)
        for same in self._in_place(schema):
            yield from self._looked_at(same, (*within, id(schema)))

    def _in_place(self, schema: Schema) -> Iterator[Any]:
        for keyword in _LISTS_IN_PLACE:
            yield from _listed(schema.get(keyword))
        for keyword in _ONE_IN_PLACE:
            yield schema.get(keyword)
        for keyword in _NAMED_IN_PLACE:
            yield from _named(schema.get(keyword))
        for keyword in _REFERENCES:
            if isinstance(schema.get(keyword), str):
                yield self._target_of(schema[keyword])

    def _target_of(self, reference: str) -> Any:
        """What is named; what cannot be found here may be the root, which leads everywhere."""
        name, _, pointer = reference.partition("#")
        found = self._root
        if name:
            found = next((self._references[one] for one in self._references if name.endswith(one)), self._root)
        if not pointer.startswith("/"):
            return found
        for step in pointer[1:].split("/"):
            key = step.replace("~1", "/").replace("~0", "~").replace("%25", "%")
            if isinstance(found, dict) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            else:
                return self._root
        return found

    def _reached_from(self, schema: Any) -> frozenset[int]:
        """All schemas that may be come to from one, itself among them."""
        if not isinstance(schema, dict):
            return frozenset()
        known = self._below.get(id(schema))
        if known is None:
            seen: set[int] = set()
            waiting: list[Any] = [schema]
            while waiting:
                part = waiting.pop()
                if isinstance(part, dict) and id(part) not in seen:
                    seen.add(id(part))
                    waiting.extend(below for _, below in _children(part))
                    waiting.extend(self._in_place(part))
            known = self._below[id(schema)] = frozenset(seen)
        return known

    def _all(self) -> Iterator[Schema]:
        seen: set[int] = set()
        waiting: list[Any] = [self._root, *self._references.values()]
        while waiting:
            part = waiting.pop()
            if isinstance(part, dict) and id(part) not in seen:
                seen.add(id(part))
                yield part
                waiting.extend(below for _, below in _children(part))
                waiting.extend(self._in_place(part))


def _children(schema: Schema) -> Iterator[tuple[object, Any]]:
    """Which part of the value is looked at, by which schema."""
    properties = schema.get("properties")
    if isinstance(properties, dict):
        yield from properties.items()
    for below in _named(schema.get("patternProperties")):
        yield _ANY_PROPERTY, below
    for keyword in _OF_ANY_PROPERTY:
        yield _ANY_PROPERTY, schema.get(keyword)
    for keyword in _OF_ITEMS:
        below = schema.get(keyword)
        for one in below if isinstance(below, list) else (below,):
            yield _ITEMS, one


def _listed(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _named(found: Any) -> list[Any]:
    return list(found.values()) if isinstance(found, dict) else []
