"""Finds the fields that a schema tags: `confluent:tags` in Avro and JSON Schema, `(confluent.field_meta).tags` in
Protobuf.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from sluicegate.validation.rules.avro import datum as avro_datum
from sluicegate.validation.rules.avro.plan import Plan
from sluicegate.validation.rules.rule import SchemaError
from sluicegate.validation.rules.schemas.field_tags import inline_tags, protobuf_tags
from sluicegate.validation.sensitive.edits import Nodes
from sluicegate.validation.sensitive.paths import Place, SensitiveFields

_WITHIN: Final = ("allOf", "anyOf", "oneOf", "items", "prefixItems")
_WITHIN_ONE: Final = ("if", "then", "else", "not", "items", "additionalItems", "contains", "unevaluatedItems")
_BY_NAME: Final = ("dependentSchemas", "dependencies")
_MOST_PARTS = 10_000
_MOST_SHOWN = 200


def policy_of(tags: Iterable[str], policies: Sequence[SensitiveFields]) -> SensitiveFields | None:
    """Return the first policy for one of these tags; None if there is none."""
    found = frozenset(tags)
    return next((each for each in policies if found & each.tags), None)


class TaggedPlace:
    """A place that a schema tags (`Place`)."""

    passes_maps = True

    def __init__(self, path: tuple[str, ...], fields: SensitiveFields) -> None:
        self.path = path
        self.fields: SensitiveFields | None = fields

    def named(self, _name: str) -> tuple[Place, ...]:
        """Return nothing: a tag is about one field."""
        return ()


def tagged_avro(plan: Plan, policies: Sequence[SensitiveFields]) -> dict[int, dict[int, Nodes]]:
    """Return the tagged fields of each record, by its position in the plan and that of the field."""
    found: dict[int, dict[int, Nodes]] = {}
    for at, schema in plan.declared.items():
        if plan.numbers[at] == avro_datum.RECORD:
            for i, field in enumerate(schema["fields"]):
                policy = policy_of(inline_tags(field), policies)
                if policy is not None:
                    found.setdefault(at, {})[i] = (TaggedPlace((plan.names[at], field["name"]), policy),)
    return found


class ProtobufTags:
    """The tags of fields, read from their options on first use."""

    def __init__(self, policies: Sequence[SensitiveFields]) -> None:
        self._policies = policies
        self._known: dict[str, Nodes] = {}

    def of(self, field: Any) -> Nodes:
        """Return the place of a field's descriptor if it is tagged."""
        name = str(field.full_name)
        nodes = self._known.get(name)
        if nodes is None:
            tags = protobuf_tags(field) if any(each.tags for each in self._policies) else ()
            policy = policy_of(tags, self._policies)
            nodes = self._known[name] = () if policy is None else (TaggedPlace((name,), policy),)
        return nodes


def tagged_json(schema: Any, references: Mapping[str, Any], policies: Sequence[SensitiveFields]) -> Nodes:
    """Return the place of the outermost value, from which tagged properties are found; nothing without such policies.

    A property is tagged if any part of its schema has the tag: it is not evaluated which part applies.
    Places raise SchemaError where the schema cannot be followed, because a tag could be missed there.
    """
    if not any(each.tags for each in policies):
        return ()
    return (_Schemas(references, policies).outermost(schema),)


Part = tuple[dict[str, Any], Any]
"""A schema, and the document that it is a part of."""


class _Schemas:
    def __init__(self, references: Mapping[str, Any], policies: Sequence[SensitiveFields]) -> None:
        self._policies = policies
        self._references = references
        self._places: dict[tuple[str, frozenset[int]], _JsonPlace] = {}

    def outermost(self, schema: Any) -> "_JsonPlace":
        """Return the place of a whole value, which has no tag."""
        return _JsonPlace(self, (), None, self._parts([(schema, schema)]))

    def place(self, name: str, of: Iterable[tuple[Any, Any]]) -> "_JsonPlace":
        """Return the place of a property with these schemas; the same for each way that leads there."""
        parts = self._parts(of)
        key = name, frozenset(id(part) for part, _ in parts)
        found = self._places.get(key)
        if found is None:
            if len(self._places) >= _MOST_PARTS:
                raise SchemaError(f"its values have more than {_MOST_PARTS} kinds of places")
            tags = (tag for part, _ in parts for tag in inline_tags(part))
            found = self._places[key] = _JsonPlace(self, (name,), policy_of(tags, self._policies), parts)
        return found

    def _parts(self, of: Iterable[tuple[Any, Any]]) -> list[Part]:
        """Return all schemas that may apply to one value, or to the items of an array."""
        found: dict[int, Part] = {}
        waiting = list(of)
        while waiting:
            part, document = waiting.pop()
            if not isinstance(part, dict) or id(part) in found:
                continue
            if len(found) >= _MOST_PARTS:
                raise SchemaError(f"more than {_MOST_PARTS} of its parts may apply to one value")
            found[id(part)] = (part, document)
            _check_followed(part, document)
            within = [each for name in _WITHIN for each in _list(part.get(name))]
            within += [part[name] for name in _WITHIN_ONE if name in part]
            within += [each for name in _BY_NAME for each in _dict(part.get(name)).values()]
            waiting += [(each, document) for each in within]
            if isinstance(part.get("$ref"), str):
                waiting.append(self._referred(part["$ref"], document))
        return list(found.values())

    def _referred(self, reference: str, document: Any) -> tuple[Any, Any]:
        name, _, pointer = reference.partition("#")
        if name and name != str(_dict(document).get("$id", "")).rstrip("#"):
            documents = [
                it
                for key, it in self._references.items()
                if name == key or name.endswith("/" + key) or key.endswith("/" + name)
            ]
            if len(documents) != 1:
                raise _not_followed(reference)
            document = documents[0]
        if pointer and not pointer.startswith("/"):
            raise _not_followed(reference)  # the name of an anchor
        found = document
        for token in unquote(pointer).split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            try:
                found = found[int(key)] if isinstance(found, list) else found[key]
            except (LookupError, TypeError, ValueError):
                raise _not_followed(reference) from None
        return found, document


def _check_followed(part: dict[str, Any], document: Any) -> None:
    """Raise SchemaError if what a part refers to depends on more than its document."""
    for keyword in ("$dynamicRef", "$recursiveRef"):
        if keyword in part:
            raise SchemaError(f"its tags cannot be found, because it has {keyword}; use $ref")
    base = part.get("$id", part.get("id"))
    if part is not document and isinstance(base, str) and not base.startswith("#"):
        raise SchemaError("its tags cannot be found, because a schema within it has an id of its own; leave it out")


def _not_followed(reference: str) -> SchemaError:
    return SchemaError(
        f"its tags cannot be found, because the reference {reference[:_MOST_SHOWN]!r} cannot be followed; refer to a "
        "part by its path, as #/$defs/NAME"
    )


class _JsonPlace:
    """A value's place in a JSON Schema (`Place`)."""

    passes_maps = True

    def __init__(
        self, schemas: _Schemas, path: tuple[str, ...], fields: SensitiveFields | None, parts: Sequence[Part]
    ) -> None:
        self.path = path
        self.fields = fields
        self._schemas = schemas
        self._parts = parts
        self._below: dict[str, _JsonPlace] = {}
        self._known = frozenset(name for part, _ in parts for name in _dict(part.get("properties")))

    def named(self, name: str) -> tuple[Place, ...]:
        """Return the place of a property. Raises SchemaError."""
        kept = name if name in self._known else "*"
        found = self._below.get(kept)
        if found is None:
            found = self._below[kept] = self._schemas.place(kept, self._properties(kept))
        return (found,)

    def _properties(self, name: str) -> Iterator[tuple[Any, Any]]:
        for part, document in self._parts:
            properties = _dict(part.get("properties"))
            if name in properties:
                yield properties[name], document
            for others in _dict(part.get("patternProperties")).values():
                yield others, document
            for keyword in ("additionalProperties", "unevaluatedProperties"):
                if name not in properties and keyword in part:
                    yield part[keyword], document


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
