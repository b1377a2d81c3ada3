"""Describes all versions of a message once, and compiles a construct schema for one version.

As in Kafka's own message definitions, a message lists its fields with the versions in which each exists.
`MessageSchema.at(version)` compiles them into one construct. Values are plain dicts that map field names to values.
Tagged fields are listed among the others. Unknown tags are kept under `UNKNOWN_TAGS` as {tag: bytes}, so a parsed
message can be rebuilt byte for byte.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from construct import Construct, ConstructError

from sluicegate.protocol.errors import MalformedMessage, SchemaMisuse
from sluicegate.protocol.messages.wire_types import BOOL as _BOOL
from sluicegate.protocol.messages.wire_types import (
    INTEGERS,
    UUID_BYTES,
    Body,
    BodyField,
    Items,
    MessageReader,
    Optional,
    Sized,
    TaggedField,
)

Value = dict[str, Any]
_REQUIRED: Any = object()
DEFAULT_MAX_ELEMENTS = 100_000
UNKNOWN_TAGS = "unknown_tags"


@dataclass(frozen=True, slots=True)
class Primitive:
    """A wire type, by Kafka's name: int8 to int64, bool, uuid, string, bytes, records."""

    name: str


INT8, INT16, INT32, INT64 = (Primitive(f"int{bits}") for bits in (8, 16, 32, 64))
BOOL, UUID, STRING, BYTES, RECORDS = (Primitive(n) for n in ("bool", "uuid", "string", "bytes", "records"))


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """An array of `item`s."""

    item: "Kind"


@dataclass(frozen=True, slots=True)
class StructOf:
    """A nested struct. In flexible versions, it ends with its own tagged fields."""

    fields: tuple["Field", ...]


Kind = Primitive | ArrayOf | StructOf


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its versions (`since` to `until`), the first version in which it may be null, and its tag.

    `tag` is None if the field is not tagged.
    """

    name: str
    kind: Kind
    since: int = 0
    until: int = 32767
    nullable_since: int = 32767
    tag: int | None = None
    default: Any = _REQUIRED

    def exists_in(self, version: int) -> bool:
        """Return whether `version` contains this field."""
        return self.since <= version <= self.until


def struct(*fields: Field) -> StructOf:
    """Return a nested struct with these fields."""
    return StructOf(fields)


def array(*fields: Field) -> ArrayOf:
    """Return an array of structs with these fields."""
    return ArrayOf(StructOf(fields))


class MessageSchema:
    """All versions of one request or response body.

    `versions` are the supported versions, `flexible_since` is the first version with compact types and tags.
    """

    def __init__(self, name: str, versions: range, flexible_since: int, *fields: Field) -> None:
        self.name = name
        self.versions = versions
        self.flexible_since = flexible_since
        self.fields = fields
        self._compiled: dict[int, Construct] = {}

    def at(self, version: int) -> Construct:
        """Return the construct for one version. Raises SchemaMisuse for a version outside `versions`."""
        if version not in self._compiled:
            if version not in self.versions:
                raise SchemaMisuse(f"{self.name} has no version {version} here")
            flexible = version >= self.flexible_since
            self._compiled[version] = _body(self.fields, version, flexible)
        return self._compiled[version]

    def parse(
        self, data: bytes | bytearray | memoryview, version: int, max_elements: int = DEFAULT_MAX_ELEMENTS
    ) -> Value:
        """Parse a whole body.

        Raises MalformedMessage if the body is truncated or invalid, if bytes follow it, or if it has more than
        `max_elements` array items and tagged fields in total.
        """
        value, end = _parse(self.at(version), data, self.name, version, max_elements)
        if end != len(data):
            raise MalformedMessage(f"{self.name} v{version}: {len(data) - end} bytes after its end")
        return value

    def parse_start(
        self, data: bytes | bytearray | memoryview, version: int, max_elements: int = DEFAULT_MAX_ELEMENTS
    ) -> tuple[Value, int]:
        """Parse a body that further bytes may follow. Return it and its size. Raises MalformedMessage like `parse`."""
        return _parse(self.at(version), data, self.name, version, max_elements)

    def build(self, value: Mapping[str, Any], version: int) -> bytes:
        """Return the encoded body. Raises SchemaMisuse for a value that this version cannot represent."""
        return _build(self.at(version), value, self.name, version)


def _parse(
    schema: Construct, data: bytes | bytearray | memoryview, name: str, version: int, max_elements: int
) -> tuple[Value, int]:
    stream = MessageReader(data, max_elements)
    try:
        value: Value = schema.parse_stream(stream)
    except (ConstructError, MalformedMessage) as error:
        reason = next(iter(reversed(str(error).strip().splitlines())), type(error).__name__)
        raise MalformedMessage(f"{name} v{version}: {reason}") from error
    return value, stream.tell()


def _build(schema: Construct, value: Mapping[str, Any], name: str, version: int) -> bytes:
    try:
        return bytes(schema.build(value))
    except (ConstructError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise SchemaMisuse(f"{name} v{version}: {error}") from error


def _body(fields: tuple[Field, ...], version: int, flexible: bool) -> Body:
    plain, tagged = [], {}
    for field in fields:
        if not field.exists_in(version):
            continue
        wire = _wire(field.kind, version, flexible, nullable=version >= field.nullable_since)
        default = () if field.default is _REQUIRED else (field.default,)
        if field.tag is None:
            plain.append(BodyField(field.name, wire, default))
        else:
            tagged[field.tag] = TaggedField(field.name, wire, field.default)
    known = frozenset(field.name for field in fields) | {UNKNOWN_TAGS}
    return Body(tuple(plain), tagged if flexible else None, known, UNKNOWN_TAGS)


def _wire(kind: Kind, version: int, flexible: bool, nullable: bool) -> Construct:
    match kind:
        case ArrayOf(item):
            return Items(_wire(item, version, flexible, nullable=False), compact=flexible, nullable=nullable)
        case StructOf(fields):
            body = _body(fields, version, flexible)
            return Optional(body) if nullable else body
        case Primitive("string"):
            return Sized(2, compact=flexible, nullable=nullable, text=True)
        case Primitive("bytes" | "records"):
            return Sized(4, compact=flexible, nullable=nullable, text=False)
        case Primitive("bool"):
            return _BOOL
        case Primitive("uuid"):
            return UUID_BYTES
        case Primitive(name):
            return INTEGERS[name]


NODE_ENDPOINTS = array(
    Field("node_id", INT32),
    Field("host", STRING),
    Field("port", INT32),
    Field("rack", STRING, nullable_since=0, default=None),
)
"""Broker addresses in responses of Produce v10+, Fetch v16+ and the share APIs (KIP-951)."""

LEADER_ID_AND_EPOCH = struct(Field("leader_id", INT32, default=-1), Field("leader_epoch", INT32, default=-1))
NO_LEADER = {"leader_id": -1, "leader_epoch": -1}
