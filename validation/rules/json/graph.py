"""Represents a JSON Schema as a graph: for each schema, the schemas that apply to the same value and to inner values.

Keywords of all drafts are read together. A place may therefore have more edges than in its own draft, but never fewer.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urljoin

Schema = dict[str, Any]

# In-place applicators (2020-12 core, 10.2), including those of older drafts. They apply to the same value.
_LISTS_IN_PLACE: Final = ("allOf", "anyOf", "oneOf")
_ONE_IN_PLACE: Final = ("not", "if", "then", "else")
_NAMED_IN_PLACE: Final = ("dependentSchemas", "dependencies")
_OF_ANY_PROPERTY: Final = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_OF_ANY_ITEM: Final = ("additionalItems", "contains", "unevaluatedItems")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_LEADING_ON: Final = frozenset(
    {*_LISTS_IN_PLACE, *_ONE_IN_PLACE, *_NAMED_IN_PLACE, *_OF_ANY_PROPERTY, *_OF_ANY_ITEM, *_REFERENCES}
    | {"properties", "patternProperties", "items", "prefixItems"}
)
_MOST_PLACES = 100_000
_MOST_DEEP = 2_000


class Unclear(Exception):
    """Raised if a reference is ambiguous, or its target cannot be found."""


@dataclass(slots=True)
class SchemaNode:
    """A schema and its edges.

    - `in_place`: groups of schemas; one schema from each group applies to the same value.
    - `named`: one of these applies to a property that the schema names.
    - `everywhere`: all of these apply to every property.
    - `listed`: one of these applies to an item.
    - `items`: all of these apply to every item.
    - `is_alternative`: whether the schema belongs to an anyOf or oneOf.
    """

    schema: Schema
    in_place: list[tuple[int, ...]] = field(default_factory=list)
    named: list[int] = field(default_factory=list)
    everywhere: list[int] = field(default_factory=list)
    listed: list[int] = field(default_factory=list)
    items: list[int] = field(default_factory=list)
    is_alternative: bool = False


@dataclass(frozen=True, slots=True)
class SchemaGraph:
    """A graph of schemas. The first of `places` is the root."""

    places: tuple[SchemaNode, ...]


def schema_graph(root: Any, references: Mapping[str, Any]) -> SchemaGraph:
    """Return the graph. `references` contains the other schemas, by the names that the root uses. Raises Unclear."""
    return SchemaGraph(tuple(_Reader(root, references).read()))


class _Reader:
    """A reader that reads each schema once, even if several paths lead to it."""

    def __init__(self, root: Any, references: Mapping[str, Any]) -> None:
        self._documents = Documents(root, references)
        self._places: list[SchemaNode] = []
        self._known: dict[int, int] = {}
        self._waiting: list[tuple[int, str]] = []
        self._root = root

    def read(self) -> list[SchemaNode]:
        if isinstance(self._root, dict):
            self._place(self._root, "")
        while self._waiting:
            at, document = self._waiting.pop()
            self._fill(self._places[at], document)
        return self._places

    def _place(self, schema: Any, document: str) -> int | None:
        """Return the index of a schema's place, or None for true or false."""
        if not isinstance(schema, dict):
            return None
        at = self._known.get(id(schema))
        if at is None:
            if len(self._places) == _MOST_PLACES:
                raise Unclear
            at = self._known[id(schema)] = len(self._places)
            self._places.append(SchemaNode(schema))
            self._waiting.append((at, document))
        return at

    def _fill(self, place: SchemaNode, document: str) -> None:
        schema = place.schema
        if schema.keys().isdisjoint(_LEADING_ON):
            return

        def indexes_of_nodes(found: Iterator[Any]) -> list[int]:
            return [at for one in found if (at := self._place(one, document)) is not None]

        place.in_place += [(at,) for at in indexes_of_nodes(_same(schema))]
        place.in_place += [tuple(indexes_of_nodes(iter(found))) for found in self._documents.referred(schema, document)]
        if isinstance(schema.get("$ref"), str):
            target, its_document = self._documents.target(schema["$ref"], document)
            at = self._place(target, its_document)
            place.in_place += [] if at is None else [(at,)]
        place.named = indexes_of_nodes(iter(_named(schema.get("properties"))))
        place.everywhere = indexes_of_nodes(
            iter([*_named(schema.get("patternProperties")), *_of(schema, _OF_ANY_PROPERTY)])
        )
        items = schema.get("items")
        place.listed = indexes_of_nodes(iter([*_listed(schema.get("prefixItems")), *_listed(items)]))
        place.items = indexes_of_nodes(iter([*_of(schema, _OF_ANY_ITEM), items]))
        for at in indexes_of_nodes(iter([*_listed(schema.get("anyOf")), *_listed(schema.get("oneOf"))])):
            self._places[at].is_alternative = True


class Documents:
    """A resolver that resolves references as jsonschema-rs does. It raises Unclear if the result is uncertain."""

    def __init__(self, root: Any, references: Mapping[str, Any]) -> None:
        self._documents: dict[str, Any] = {"": root, **references}
        self._bases = {name: urljoin(name, _id_of(document)) for name, document in self._documents.items()}
        self._anchors: dict[tuple[str, str], list[Schema]] = {}
        self._dynamic: dict[str, list[Schema]] = {}
        self._recursive: list[Schema] = []
        self._has_inner_ids = False
        for name, document in self._documents.items():
            self._index(name, document)

    def referred(self, schema: Schema, document: str) -> Iterator[list[Schema]]:
        """Yield the possible schemas of each dynamic reference."""
        dynamic = schema.get("$dynamicRef")
        if isinstance(dynamic, str):
            others = self._dynamic.get(dynamic.rpartition("#")[2], [])
            target, _ = self.target(dynamic, document)
            yield [*others, *([target] if isinstance(target, dict) else [])]
        if isinstance(schema.get("$recursiveRef"), str):
            yield [*self._recursive, *(one for one in [self._documents[document]] if isinstance(one, dict))]

    def target(self, reference: str, document: str) -> tuple[Any, str]:
        """Return the schema that a reference points to, and the name of its document."""
        if self._has_inner_ids:
            raise Unclear
        name, _, fragment = reference.partition("#")
        found = document if not name else self._document(urljoin(self._bases[document], name), name)
        if not fragment:
            return self._documents[found], found
        if fragment.startswith("/"):
            return _at(self._documents[found], unquote(fragment)), found
        anchored = self._anchors.get((found, fragment), [])
        if len(anchored) != 1:
            raise Unclear
        return anchored[0], found

    def _document(self, uri: str, name: str) -> str:
        if "json-schema.org" in uri:
            raise Unclear
        found = {
            one
            for one, base in self._bases.items()
            if base in (uri, name) or (one and (one in (name, uri) or uri.endswith("/" + one)))
        }
        if len(found) != 1:
            raise Unclear
        return found.pop()

    def _index(self, name: str, document: Any) -> None:
        is_old = isinstance(document, dict) and "draft-04" in str(document.get("$schema"))
        waiting: list[tuple[Any, int]] = [(document, 0)]
        while waiting:
            part, depth = waiting.pop()
            if depth > _MOST_DEEP:
                raise Unclear
            if isinstance(part, dict):
                if depth and (isinstance(part.get("$id"), str) or (is_old and isinstance(part.get("id"), str))):
                    self._has_inner_ids = True
                for keyword in ("$anchor", "$dynamicAnchor"):
                    anchor = part.get(keyword)
                    if isinstance(anchor, str):
                        self._anchors.setdefault((name, anchor), []).append(part)
                if isinstance(part.get("$dynamicAnchor"), str):
                    self._dynamic.setdefault(part["$dynamicAnchor"], []).append(part)
                if part.get("$recursiveAnchor") is True:
                    self._recursive.append(part)
                waiting.extend((one, depth + 1) for one in part.values() if isinstance(one, dict | list))
            elif isinstance(part, list):
                waiting.extend((one, depth + 1) for one in part if isinstance(one, dict | list))


def _id_of(document: Any) -> str:
    found = document.get("$id", document.get("id")) if isinstance(document, dict) else None
    return found.rstrip("#") if isinstance(found, str) else ""


def _at(document: Any, pointer: str) -> Any:
    found = document
    for step in pointer[1:].split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            raise Unclear
    return found


def _same(schema: Schema) -> Iterator[Any]:
    for keyword in _LISTS_IN_PLACE:
        yield from _listed(schema.get(keyword))
    for keyword in _ONE_IN_PLACE:
        yield schema.get(keyword)
    for keyword in _NAMED_IN_PLACE:
        yield from _named(schema.get(keyword))


def _of(schema: Schema, keywords: tuple[str, ...]) -> Iterator[Any]:
    for keyword in keywords:
        yield schema.get(keyword)


def _listed(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _named(found: Any) -> list[Any]:
    return list(found.values()) if isinstance(found, dict) else []
