"""Finds the fields that a schema tags.

Tags are `confluent:tags` in Avro and JSON Schema, and `(confluent.field_meta).tags` in Protobuf.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from sluicegate.validation.rules.avro import datum as avro_datum
from sluicegate.validation.rules.avro.plan import DatumPlan
from sluicegate.validation.rules.rule import SchemaError
from sluicegate.validation.rules.schemas.field_tags import inline_tags, protobuf_tags
from sluicegate.validation.sensitive.avro_records import KINDS_OF_AVRO
from sluicegate.validation.sensitive.edits import Nodes
from sluicegate.validation.sensitive.kept import KeptParts
from sluicegate.validation.sensitive.paths import FieldPolicy
from sluicegate.validation.sensitive.protobuf_messages import STRING_VALUE
from sluicegate.validation.sensitive.tagged import policy_of

_WITHIN: Final = ("allOf", "anyOf", "oneOf", "items", "prefixItems")
_WITHIN_ONE: Final = ("if", "then", "else", "not", "items", "additionalItems", "contains", "unevaluatedItems")
_BY_NAME: Final = ("dependentSchemas", "dependencies")
_MOST_PARTS = 10_000
_MOST_SIZE = 100_000
_PART_WORK = 4096
_MOST_SHOWN = 200
_UNMASKABLE: Final = frozenset({"number", "integer", "boolean", "null"})


class FieldWithTags(NamedTuple):
    """A tagged field in a schema.

    `name` is its name in messages. `kind` describes its values if none of them can be masked; otherwise it is None.
    """

    name: str
    tags: frozenset[str]
    kind: str | None


def tagged_fields_of_avro(plan: DatumPlan) -> Iterator[FieldWithTags]:
    """Yield a schema's tagged fields."""
    for at, schema in plan.declared.items():
        if plan.numbers[at] == avro_datum.RECORD:
            for i, field in enumerate(schema["fields"]):
                tags = inline_tags(field)
                if tags:
                    yield FieldWithTags(f"{plan.names[at]}.{field['name']}", tags, _kind_of_avro(plan, at + 2 + i))


def _kind_of_avro(plan: DatumPlan, place: int) -> str | None:
    """Return the kind of a type's values, or None if some of them can be masked.

    `place` is where the plan stores the position of the type.
    """
    numbers = plan.numbers
    seen: set[int] = set()
    waiting, kinds = [numbers[place]], set[int]()
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        kind = numbers[at]
        if kind == avro_datum.UNION:
            waiting += numbers[at + 2 : at + 2 + numbers[at + 1]]
        elif kind in (avro_datum.ARRAY, avro_datum.MAP):
            waiting.append(numbers[at + 1])
        elif kind != avro_datum.NULL:
            kinds.add(kind)
    return None if not kinds or avro_datum.STRING in kinds else KINDS_OF_AVRO[min(kinds)]


def tagged_fields_of_protobuf(messages: Iterable[Any]) -> Iterator[FieldWithTags]:
    """Yield the tagged fields of messages and of inner messages, from their descriptors."""
    known: set[str] = set()
    waiting = list(messages)
    while waiting and len(known) < _MOST_PARTS:
        message = waiting.pop()
        if message.full_name in known:
            continue
        known.add(message.full_name)
        for field in message.fields:
            tags = protobuf_tags(field)
            if tags:
                yield FieldWithTags(str(field.full_name), tags, _kind_of_protobuf(field))
            if field.message_type is not None:
                waiting.append(field.message_type)


def _kind_of_protobuf(field: Any) -> str | None:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        field = inner.fields_by_name["value"]
        inner = field.message_type
    if inner is not None:
        return None if inner.full_name == STRING_VALUE else "a message"
    if field.type == field.TYPE_STRING:
        return None
    return "bytes" if field.type == field.TYPE_BYTES else "a number, a boolean or an enum"


def tagged_fields_of_json(schema: Any, references: Mapping[str, Any]) -> Iterator[FieldWithTags]:
    """Yield a schema's tagged properties. Raises SchemaError if the schema cannot be followed."""
    waiting = [_Schemas(references, (), KeptParts()).outermost(schema, _ignore)]
    known: set[int] = set()
    while waiting:
        place = waiting.pop()
        if id(place) in known:
            continue
        known.add(id(place))
        tags = place.tags
        if tags:
            yield FieldWithTags(".".join(place.path), tags, place.kind)
        waiting += place.below()


def tagged_json(
    schema: Any,
    references: Mapping[str, Any],
    policies: Sequence[FieldPolicy],
    kept: KeptParts,
    worked: Callable[[int], None],
) -> Nodes:
    """Return the outermost value's place, from which tagged properties are found. Return nothing without such policies.

    A property counts as tagged if any part of its schema has the tag, even a part that does not apply. Places raise
    SchemaError if the schema cannot be followed, because a tag could be missed. `worked` is called with the cost (ns)
    of each part, and its errors pass through. `kept` counts the places.
    """
    if not any(each.tags for each in policies):
        return ()
    return (_Schemas(references, policies, kept).outermost(schema, worked),)


def _ignore(_work: int) -> None:
    """Do nothing, because the command that lists tags has no limit."""


Part = tuple[dict[str, Any], Any]
"""A schema, and the document that contains it."""


class _Schemas:
    def __init__(self, references: Mapping[str, Any], policies: Sequence[FieldPolicy], kept: KeptParts) -> None:
        self._policies = policies
        self._references = references
        self._kept = kept
        self._size = 0
        self._places: dict[tuple[str, frozenset[int]], _JsonPlace] = {}

    def outermost(self, schema: Any, worked: Callable[[int], None]) -> "_JsonPlace":
        """Return the place of a whole value, which has no tags."""
        return _JsonPlace(self, (), None, self._parts([(schema, schema)], worked))

    def place(self, name: str, of: Iterable[tuple[Any, Any]], worked: Callable[[int], None]) -> "_JsonPlace":
        """Return the place of a property with these schemas. It is the same for each path to the property."""
        parts = self._parts(of, worked)
        key = name, frozenset(id(part) for part, _ in parts)
        found = self._places.get(key)
        if found is None:
            if len(self._places) >= _MOST_PARTS:
                raise SchemaError(f"the values have more than {_MOST_PARTS} kinds of places")
            size = sum(1 + len(_dict(part.get("properties"))) for part, _ in parts)
            if self._size + size > _MOST_SIZE:
                raise SchemaError(f"the places of the values have more than {_MOST_SIZE} parts and properties together")
            found = self._places[key] = _JsonPlace(self, (name,), policy_of(_tags_of(parts), self._policies), parts)
            self._size += size
            self._kept.size += size
        return found

    def _parts(self, of: Iterable[tuple[Any, Any]], worked: Callable[[int], None]) -> list[Part]:
        """Return all schemas that may apply to a value, or to an array's items."""
        found: dict[int, Part] = {}
        waiting = list(of)
        while waiting:
            part, document = waiting.pop()
            worked(_PART_WORK)
            if not isinstance(part, dict) or id(part) in found:
                continue
            if len(found) >= _MOST_PARTS:
                raise SchemaError(f"more than {_MOST_PARTS} parts of the schema may apply to one value")
            found[id(part)] = (part, document)
            _check_followed(part, document)
            within = [each for name in _WITHIN for each in _list(part.get(name))]
            within += [part[name] for name in _WITHIN_ONE if name in part]
            within += [each for name in _BY_NAME for each in _dict(part.get(name)).values()]
            waiting += [(each, document) for each in within]
            if isinstance(part.get("$ref"), str):
                worked(len(part["$ref"]))
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
            raise _not_followed(reference)  # the reference names an anchor
        found = document
        for token in unquote(pointer).split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            try:
                found = found[int(key)] if isinstance(found, list) else found[key]
            except (LookupError, TypeError, ValueError):
                raise _not_followed(reference) from None
        return found, document


def _check_followed(part: dict[str, Any], document: Any) -> None:
    """Raise SchemaError if a reference in a part depends on more than its document."""
    for keyword in ("$dynamicRef", "$recursiveRef"):
        if keyword in part:
            raise SchemaError(f"the tags cannot be found, because the schema has {keyword}; use $ref")
    base = part.get("$id", part.get("id"))
    if part is not document and isinstance(base, str) and not base.startswith("#"):
        raise SchemaError("the tags cannot be found, because an inner schema has its own id; leave the id out")


def _not_followed(reference: str) -> SchemaError:
    return SchemaError(
        f"the tags cannot be found, because the reference {reference[:_MOST_SHOWN]!r} cannot be followed; refer to a "
        "part by its path, as #/$defs/NAME"
    )


class _JsonPlace:
    """A value's place in a JSON Schema (`FieldPlace`)."""

    passes_maps = True
    has_nested_places = True

    def __init__(
        self, schemas: _Schemas, path: tuple[str, ...], fields: FieldPolicy | None, parts: Sequence[Part]
    ) -> None:
        self.path = path
        self.fields = fields
        self._schemas = schemas
        self._parts = parts
        self._below: dict[str, _JsonPlace] = {}
        self._known = frozenset(name for part, _ in parts for name in _dict(part.get("properties")))

    @property
    def tags(self) -> frozenset[str]:
        """The tags of the place."""
        return _tags_of(self._parts)

    @property
    def kind(self) -> str | None:
        """Return the kind of the non-null values if none of them can be masked; otherwise None."""
        types = {kind for part, _ in self._parts for kind in _types_of(part)}
        return "a number or a boolean" if types and types <= _UNMASKABLE else None

    def below(self) -> "list[_JsonPlace]":
        """Return the places of all properties. Raises SchemaError."""
        names = [*self._known, *("*" for _ in self._properties("*", _ignore))]
        return [place for name in dict.fromkeys(names) for place in self.named(name, _ignore)]

    @property
    def longest_name(self) -> int:
        """Return the length of the longest name (characters)."""
        return max(map(len, self._known), default=1)  # at least that of "*"

    def named(self, name: str, worked: Callable[[int], None]) -> "tuple[_JsonPlace, ...]":
        """Return the place of a property. Raises SchemaError."""
        kept = name if name in self._known else "*"
        found = self._below.get(kept)
        if found is None:
            found = self._below[kept] = self._schemas.place(kept, self._properties(kept, worked), worked)
        return (found,)

    def _properties(self, name: str, worked: Callable[[int], None]) -> Iterator[tuple[Any, Any]]:
        for part, document in self._parts:
            worked(_PART_WORK)
            properties = _dict(part.get("properties"))
            if name in properties:
                yield properties[name], document
            for others in _dict(part.get("patternProperties")).values():
                yield others, document
            for keyword in ("additionalProperties", "unevaluatedProperties"):
                if name not in properties and keyword in part:
                    yield part[keyword], document


def _tags_of(parts: Iterable[Part]) -> frozenset[str]:
    return frozenset(tag for part, _ in parts for tag in inline_tags(part))


def _types_of(part: dict[str, Any]) -> list[str]:
    given = part.get("type")
    return [each for each in (given if isinstance(given, list) else [given]) if isinstance(each, str)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
