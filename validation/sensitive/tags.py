"""Finds the fields that a schema tags: `confluent:tags` in Avro and JSON Schema, `(confluent.field_meta).tags` in
Protobuf.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from sluicegate.validation.rules.avro import datum as avro_datum
from sluicegate.validation.rules.avro.plan import Plan
from sluicegate.validation.sensitive.edits import Nodes
from sluicegate.validation.sensitive.paths import Place, SensitiveFields

_TAGS: Final = "confluent:tags"
_FIELD_META, _META_TAGS = 1088, 3  # confluent/meta.proto
_LENGTH = 2
_CONTINUES = 0x80
_WITHIN: Final = ("allOf", "anyOf", "oneOf")
_WITHIN_ONE: Final = ("if", "then", "else", "items", "additionalItems", "contains", "unevaluatedItems")
_MOST_PARTS = 10_000


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
                policy = policy_of(_texts(field.get(_TAGS)), policies)
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
            options = field.GetOptions().SerializeToString() if any(each.tags for each in self._policies) else b""
            tags = (tag for meta in _with_number(options, _FIELD_META) for tag in _with_number(meta, _META_TAGS))
            policy = policy_of((tag.decode(errors="replace") for tag in tags), self._policies)
            nodes = self._known[name] = () if policy is None else (TaggedPlace((name,), policy),)
        return nodes


def _with_number(message: bytes, wanted: int) -> Iterator[bytes]:
    """Yield the length-delimited fields with a number of a well-formed message."""
    no_fields = import_module("google.protobuf.empty_pb2").Empty
    for field in import_module("google.protobuf.unknown_fields").UnknownFieldSet(no_fields.FromString(message)):
        if field.field_number == wanted and field.wire_type == _LENGTH:
            yield field.data


def tagged_json(schema: Any, references: Mapping[str, Any], policies: Sequence[SensitiveFields]) -> Nodes:
    """Return the place of the outermost value, from which tagged properties are found; nothing without such policies.

    A property is tagged if any part of its schema has the tag: it is not evaluated which part applies.
    """
    if not any(each.tags for each in policies):
        return ()
    return (_JsonPlace(_Schemas(references, policies), (), ((schema, schema),)),)


class _Schemas:
    def __init__(self, references: Mapping[str, Any], policies: Sequence[SensitiveFields]) -> None:
        self.policies = policies
        self._references = references

    def parts(self, of: Iterable[tuple[Any, Any]]) -> list[tuple[dict[str, Any], Any]]:
        """Return all schemas that may apply to one value, or to the items of an array, each with its document."""
        found: dict[int, tuple[dict[str, Any], Any]] = {}
        waiting = list(of)
        while waiting and len(found) < _MOST_PARTS:
            part, document = waiting.pop()
            if not isinstance(part, dict) or id(part) in found:
                continue
            found[id(part)] = (part, document)
            waiting += [(each, document) for name in _WITHIN for each in _list(part.get(name))]
            waiting += [(each, document) for name in ("items", "prefixItems") for each in _list(part.get(name))]
            waiting += [(part[name], document) for name in _WITHIN_ONE if name in part]
            if isinstance(part.get("$ref"), str):
                waiting.append(self._referred(part["$ref"], document))
        return list(found.values())

    def _referred(self, reference: str, document: Any) -> tuple[Any, Any]:
        name, _, pointer = reference.partition("#")
        if name:
            others = self._references.items()
            document = next((it for key, it in others if name == key or key.endswith("/" + name)), None)
        found = document
        for token in pointer.split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            else:
                found = found.get(key) if isinstance(found, dict) else None
        return found, document


class _JsonPlace:
    """A value's place in a JSON Schema (`Place`)."""

    passes_maps = True

    def __init__(self, schemas: _Schemas, path: tuple[str, ...], of: Sequence[tuple[Any, Any]]) -> None:
        self.path = path
        self._schemas = schemas
        self._parts = schemas.parts(of)
        tags = (tag for part, _ in self._parts for tag in _texts(part.get(_TAGS)))
        self.fields = policy_of(tags, schemas.policies) if path else None
        self._below: dict[str, _JsonPlace] = {}
        self._known = frozenset(name for part, _ in self._parts for name in _dict(part.get("properties")))

    def named(self, name: str) -> tuple[Place, ...]:
        """Return the place of a property."""
        kept = name if name in self._known else "*"
        found = self._below.get(kept)
        if found is None:
            path = (*self.path, kept)
            found = self._below[kept] = _JsonPlace(self._schemas, path, list(self._properties(kept)))
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


def _texts(value: Any) -> list[str]:
    return [each for each in _list(value) if isinstance(each, str)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
