"""Finds the places of the rules inside a JSON Schema, and whether they depend on changes of fields.

A rule below `oneOf`, `anyOf` or several types applies if the value matches that schema. After a field changes, its
value may match another schema than before.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sluicegate.validation.rules.json.graph import Documents, Unclear
from sluicegate.validation.rules.schemas.inline_rules import RulePlace, inline_rules_in

_ALTERNATIVES: Final = ("oneOf", "anyOf")
_PROPERTIES: Final = "properties"
_Part = tuple[Any, str]
"""A part of a schema, and the name of its document."""


def places_of_json(schema: Any, references: Mapping[str, Any], changed: frozenset[str]) -> Iterator[RulePlace]:
    """Yield the parts of a schema that have rules, with `id` as their key.

    `changed` contains names of changed properties.
    """
    documents = {"": schema, **references}
    uncertain = _uncertain(schema, references, changed) if changed else frozenset[int]()
    for document in documents.values():
        for part, field in _objects_in(document):
            rules = inline_rules_in(part)
            if rules:
                yield RulePlace(id(part), rules, field, uncertain is None or id(part) in uncertain)


def _objects_in(document: Any) -> Iterator[tuple[dict[str, Any], str | None]]:
    """Yield all objects in a document, with the property's name for those of properties."""
    waiting: list[tuple[Any, str | None]] = [(document, None)]
    while waiting:
        part, field = waiting.pop()
        if isinstance(part, dict):
            yield part, field
            for keyword, each in part.items():
                if keyword == _PROPERTIES and isinstance(each, dict):
                    waiting += [(inner, name) for name, inner in each.items()]
                else:
                    waiting.append((each, None))
        elif isinstance(part, list):
            waiting += [(each, None) for each in part]


def _uncertain(schema: Any, references: Mapping[str, Any], changed: frozenset[str]) -> frozenset[int] | None:
    """Return the parts that may apply to a value depending on changed properties; None if that cannot be determined."""
    try:
        reach = _Reach(Documents(schema, references))
        found: set[int] = set()
        for part, document in reach.of([(schema, "")]):
            branches = [(each, document) for each in _branches_of(part)]
            parts = reach.of(branches)
            if any(not changed.isdisjoint(_named_by(each)) for each, _ in parts):
                found |= {id(each) for each, _ in parts}
            named = part.get(_PROPERTIES)
            if isinstance(named, dict):
                inner = [(each, document) for name, each in named.items() if name in changed]
                found |= {id(each) for each, _ in reach.of(inner)}
    except Unclear:
        return None
    return frozenset(found)


def _branches_of(part: dict[str, Any]) -> Iterator[Any]:
    for keyword in _ALTERNATIVES:
        found = part.get(keyword)
        yield from found if isinstance(found, list) else ()
    if isinstance(part.get("type"), list):
        yield part


def _named_by(part: dict[str, Any]) -> frozenset[str]:
    named = part.get(_PROPERTIES)
    return frozenset(named) if isinstance(named, dict) else frozenset()


class _Reach:
    """A helper that finds all objects of a schema that are reachable from some of its parts."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def of(self, parts: list[_Part]) -> list[_Part]:
        """Return the objects within the parts and within the targets of their references, each once. Raises Unclear."""
        waiting, seen, found = list(parts), set[int](), list[_Part]()
        while waiting:
            part, document = waiting.pop()
            if isinstance(part, list):
                waiting += [(each, document) for each in part]
            elif isinstance(part, dict) and id(part) not in seen:
                seen.add(id(part))
                found.append((part, document))
                waiting += [(each, document) for each in part.values()]
                if isinstance(part.get("$ref"), str):
                    waiting.append(self._documents.target(part["$ref"], document))
        return found
