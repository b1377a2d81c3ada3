"""Relaxes the parts of a JSON Schema that apply to encrypted properties without naming them.

`patternProperties` and `additionalProperties` may apply to a property that `properties` does not name, and `const` and
`enum` may compare an object that contains it.
"""

import re
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any, Final

from sluicegate.config.values.topic_pattern import re2_options

_WHOLE_VALUES: Final = ("const", "enum")
_KEYWORDS: Final = frozenset({"patternProperties", "additionalProperties", "unevaluatedProperties", *_WHOLE_VALUES})
Relax = Callable[[Any], Any]
"""Returns a copy of a schema that does not restrict strings."""


def mentions_unnamed(part: dict[str, Any]) -> bool:
    """Return whether an object in a schema contains a keyword that `relax_unnamed` handles."""
    return not _KEYWORDS.isdisjoint(part)


def relax_unnamed(part: dict[str, Any], names: AbstractSet[str], relax: Relax) -> bool:
    """Relax what an object requires, without naming them, of the properties in `names`.

    Returns whether the object changed.
    """
    patterns, named = part.get("patternProperties"), part.get("properties")
    by_pattern = dict(patterns) if isinstance(patterns, dict) else {}
    changed = False
    matching: set[str] = set()
    for pattern, schema in by_pattern.items():
        found = frozenset(name for name in names if _may_match(pattern, name))
        matching |= found
        relaxed = relax(schema) if found else schema
        if relaxed != schema:
            part["patternProperties"] |= {pattern: relaxed, _without(found, pattern): schema}
            changed = True
    changed |= _relax_additional(part, names - matching, named if isinstance(named, dict) else {}, relax)
    unevaluated = part.get("unevaluatedProperties")
    if isinstance(unevaluated, dict) and relax(unevaluated) != unevaluated:
        part["unevaluatedProperties"] = relax(unevaluated)
        changed = True
    for keyword in _WHOLE_VALUES:
        if _has_property(part.get(keyword), names):
            del part[keyword]
            changed = True
    return changed


def _relax_additional(part: dict[str, Any], names: AbstractSet[str], named: dict[str, Any], relax: Relax) -> bool:
    additional = part.get("additionalProperties")
    relaxed = relax(additional)
    if not isinstance(additional, dict) or relaxed == additional:
        return False
    others = {name: relaxed for name in names if name not in named}
    if others:
        part["properties"] = named | others
    return bool(others)


def _may_match(pattern: str, name: str) -> bool:
    """Return whether a pattern matches a name, in linear time. Return True if RE2 cannot compile the pattern."""
    import re2  # noqa: PLC0415  # only for schemas with encrypted properties

    try:
        return re2.search(pattern, name, re2_options()) is not None
    except re2.error:
        return True


def _without(names: AbstractSet[str], pattern: str) -> str:
    """Return a pattern that matches the same strings as another one, except for these names."""
    return rf"^(?!(?:{'|'.join(map(re.escape, sorted(names)))})$)(?=[\s\S]*?(?:{pattern}))"


def _has_property(value: Any, names: AbstractSet[str]) -> bool:
    """Return whether a value contains, at any depth, an object with one of these properties."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            if not names.isdisjoint(found):
                return True
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found
    return False
