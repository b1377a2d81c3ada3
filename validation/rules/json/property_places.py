"""Finds a JSON Schema's properties with their full names, and relaxes a schema to accept encrypted properties.

An encrypted property may be any string.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, Final

from sluicegate.validation.rules.json.unnamed_properties import mentions_unnamed, relax_unnamed
from sluicegate.validation.rules.schemas.changed_fields import ChangeableField
from sluicegate.validation.rules.schemas.field_tags import FieldChange, inline_tags

_LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_ONE: Final = ("items", "not", "if", "then", "else", "contains", "additionalProperties", "additionalItems")
_BY_NAME: Final = ("$defs", "definitions", "dependentSchemas", "patternProperties")
_ROOT: Final = "$"
# Keywords that an encrypted string may violate.
_ABOUT_TEXT: Final = ("format", "pattern", "minLength", "maxLength", "enum", "const", "contentEncoding")
_MORE_OF_TEXT: Final = ("contentMediaType", "contentSchema", "not", "if", "then", "else")
# Keywords that accept fewer values if a part within them accepts more, and the keywords to remove for each.
_REVERSED: Final = {"not": ("not",), "if": ("if", "then", "else"), "contains": ("maxContains",)}
_NONE: Final = frozenset[str]()
_ELSEWHERE = -1  # the place for parts of other documents
_MOST_VISITED = 100_000
_Property = tuple[str | None, str, dict[str, Any]]


def properties_of(schema: Any) -> Iterator[ChangeableField]:
    """Yield each property with its full name.

    Several properties may refer to the same definition. The properties in a definition therefore get full names as if
    they were properties of the root.
    """
    for full_name, name, inner in _properties(schema):
        yield ChangeableField(full_name or f"{_ROOT}.{name}", name, inline_tags(inner), _holds_properties(inner))


def _holds_properties(schema: Any) -> bool:
    """Return whether a schema's values may have properties that some schema names, perhaps through a reference."""
    waiting = [schema]
    for _ in range(_MOST_VISITED):
        if not waiting:
            return False
        part = waiting.pop()
        if not isinstance(part, dict):
            continue
        if "properties" in part or "$ref" in part or not part.keys().isdisjoint(_BY_NAME):
            return True
        waiting += [each for keyword in _LISTS for each in _list(part.get(keyword))]
        waiting += [part[keyword] for keyword in _ONE if keyword in part]
    return True


def _properties(schema: Any) -> Iterator[_Property]:
    for part, path in _objects_with_paths(schema):
        for name, inner in _dict(part.get("properties")).items():
            if isinstance(inner, dict):
                yield None if path is None else f"{path}.{name}", name, inner


def _objects_with_paths(schema: Any) -> Iterator[tuple[dict[str, Any], str | None]]:
    """Yield each object in a schema, with the full name of the values that it describes; None in a definition."""
    waiting: list[tuple[Any, str | None]] = [(schema, _ROOT)]
    for _ in range(_MOST_VISITED):
        if not waiting:
            return
        part, path = waiting.pop()
        if not isinstance(part, dict):
            continue
        yield part, path
        named = _dict(part.get("properties")).items()
        waiting += [(inner, None if path is None else f"{path}.{name}") for name, inner in named]
        waiting += [(each, path) for keyword in _LISTS for each in _list(part.get(keyword))]
        waiting += [(part[keyword], path) for keyword in _ONE if keyword in part]
        waiting += [(each, None) for keyword in _BY_NAME for each in _dict(part.get(keyword)).values()]


def accepting_encrypted(schema: Any, changes: Sequence[FieldChange]) -> Any:
    """Return a schema in which encrypted properties only need the right type.

    A change in the JSON of other data contains the name of its property (`ChangedFields.in_json`).
    """
    found = deepcopy(schema)
    appliers = [each.applies_to() for each in changes]
    places = list(_objects_with_paths(found))
    encrypted: dict[str | None, set[str]] = defaultdict(set)
    relaxed: set[int] = set()
    for part, path in places:
        for name, inner in _dict(part.get("properties")).items():
            full_name = f"{path or _ROOT}.{name}"
            if isinstance(inner, dict) and any(applies(full_name, inline_tags(inner)) for applies in appliers):
                encrypted[path].add(name)
                _relax(inner, found)
                relaxed.add(id(inner))
    names = frozenset(each.name for each in changes).union(*encrypted.values())
    for part, path in (place for place in places if mentions_unnamed(place[0])):
        by_tags = (name for name in names if any(applies(f"{path or _ROOT}.{name}", _NONE) for applies in appliers))
        here = encrypted[path].union(by_tags)
        if here and relax_unnamed(part, here, lambda each: _relaxed(each, found)):
            relaxed.add(id(part))
    if relaxed:
        _relax_around(found, relaxed)
    return found


def _relax_around(document: Any, relaxed: set[int]) -> None:
    """Remove the keywords that a value may violate because parts within them accept more values than before."""
    parents = _parents(document)
    touched, reached = set[int](), [*relaxed, _ELSEWHERE]
    while reached:
        one = reached.pop()
        if one not in touched:
            touched.add(one)
            reached += parents[one]
    for part in [each for each in _parts_of(document) if isinstance(each, dict)]:
        if id(part.get("oneOf")) in touched:
            part["allOf"] = [*_list(part.get("allOf")), {"anyOf": part.pop("oneOf")}]
        for keyword, dependents in _REVERSED.items():
            if id(part.get(keyword)) in touched:
                for each in dependents:
                    part.pop(each, None)


def _parents(document: Any) -> defaultdict[int, list[int]]:
    """Map the id of each part to the parts that contain or reference it."""
    found = defaultdict[int, list[int]](list)
    for part in _parts_of(document):
        for each in _items_of(part):
            found[id(each)].append(id(part))
        reference = part.get("$ref") if isinstance(part, dict) else None
        if isinstance(reference, str):
            target = _target(reference, document)
            found[_ELSEWHERE if target is None else id(target)].append(id(part))
    return found


def _parts_of(document: Any) -> Iterator[Any]:
    """Yield all objects and arrays in a document."""
    waiting = [document]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += _items_of(part)


def _items_of(part: Any) -> list[Any]:
    """Return the objects and arrays that a part contains directly."""
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return [each for each in inner if isinstance(each, dict | list)]


def _relax(part: Any, document: Any) -> None:
    """Remove the requirements on a string, also on a string in an array. Properties within it are separate fields."""
    if not isinstance(part, dict):
        return
    for keyword in (*_ABOUT_TEXT, *_MORE_OF_TEXT):
        part.pop(keyword, None)
    if isinstance(part.get("$ref"), str) and not _is_object(part["$ref"], document):
        del part["$ref"]
    if "oneOf" in part:  # without the strings' formats, several branches may match
        branches = _list(part.pop("oneOf"))
        part["allOf"] = [*_list(part.get("allOf")), {"anyOf": branches}]
    for each in (*_list(part.get("anyOf")), *_list(part.get("allOf")), *_list(part.get("prefixItems"))):
        _relax(each, document)
    for each in _list(part.get("items")) or [part.get("items")]:
        _relax(each, document)


def _relaxed(part: Any, document: Any) -> Any:
    copy = deepcopy(part)
    _relax(copy, document)
    return copy


def _is_object(reference: str, document: Any) -> bool:
    """Return whether a reference within a document points to a schema of objects."""
    return "properties" in _dict(_target(reference, document))


def _target(reference: str, document: Any) -> Any:
    """Return the part of a document that a reference points to, or None if it points elsewhere."""
    found = document
    steps = reference.removeprefix("#").split("/")
    if not reference.startswith("#") or steps[0]:
        return None
    for step in steps[1:]:
        found = _dict(found).get(step.replace("~1", "/").replace("~0", "~"))
    return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
