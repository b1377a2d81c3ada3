"""Defines the fields of a violation event.

The proxy writes these events, and `sluicegate-spark violations` reads them. Their JSON Schema is
docs/violation-event.schema.json.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

SCHEMA_VERSION: Final = 1


class FieldType(Enum):
    """The type of a field."""

    STRING = auto()
    INT = auto()  # 32 bits
    LONG = auto()  # 64 bits
    BOOLEAN = auto()
    OBJECT = auto()
    OBJECTS = auto()  # a list
    STRINGS = auto()  # a list
    ANY = auto()


@dataclass(frozen=True, slots=True)
class EventField:
    """A field. `fields` are those of its objects.

    `is_nullable` allows null; `is_optional` allows the field to be absent.
    """

    name: str
    type: FieldType
    fields: "tuple[EventField, ...]" = ()
    is_nullable: bool = False
    is_optional: bool = False


def _text(name: str, *, nullable: bool = False, optional: bool = False) -> EventField:
    return EventField(name, FieldType.STRING, (), nullable, optional)


def _int(name: str) -> EventField:
    return EventField(name, FieldType.INT)


def _long(name: str, *, optional: bool = False) -> EventField:
    return EventField(name, FieldType.LONG, is_optional=optional)


_OWNER = (_text("team"), _text("contact", nullable=True))
_CONTENT = (_long("size"), _text("text"))
_SAMPLE = (
    _int("index"),
    _long("timestamp"),
    _text("reason"),
    _long("earliest", optional=True),
    _long("latest", optional=True),
    _text("diagnosis", optional=True),
    _text("rule", optional=True),
    _long("fixed", optional=True),
    EventField("key", FieldType.OBJECT, _CONTENT, is_nullable=True, is_optional=True),
    EventField("value", FieldType.OBJECT, _CONTENT, is_nullable=True, is_optional=True),
)
_BOUND = (
    _text("key"),
    EventField("value", FieldType.ANY),
    _text("source"),
    _text("place", nullable=True),
    _text("path", nullable=True),
    EventField("configured", FieldType.ANY, is_optional=True),
)
_REHEARSED = (_text("key"), _long("max_ms"), _int("bad_records"))

EVENT_FIELDS: Final = (
    _int("schema_version"),
    _text("id"),
    _text("proxy"),
    _text("time"),
    _text("client_id", nullable=True),
    _text("software_name", nullable=True),
    _text("software_version", nullable=True),
    _text("principal", nullable=True),
    _text("client_address"),
    _text("topic", nullable=True),
    _text("topic_id", nullable=True),
    _int("partition"),
    EventField("owner", FieldType.OBJECT, _OWNER, is_nullable=True),
    EventField("client_owner", FieldType.OBJECT, _OWNER, is_optional=True),
    _text("outcome"),
    _text("client_error", nullable=True),
    _text("mode"),
    EventField("changes", FieldType.STRINGS),
    _text("copies", nullable=True),
    _text("waiver", nullable=True),
    _int("code"),
    _text("error"),
    _text("reason"),
    _text("reason_text"),
    _text("message", nullable=True),
    _int("records"),
    _int("bad_records"),
    EventField("samples", FieldType.OBJECTS, _SAMPLE),
    EventField("bound", FieldType.OBJECT, _BOUND, is_nullable=True),
    _text("rule", optional=True),
    EventField("rules", FieldType.OBJECTS, (_text("rule"), _int("bad_records")), is_optional=True),
    EventField("enforced", FieldType.BOOLEAN, is_optional=True),
    EventField("rehearsed", FieldType.OBJECTS, _REHEARSED, is_optional=True),
)
"""The fields of an event, in the order in which events contain them."""


def event_in(document: Any) -> Any:
    """Return the event in a line or record: a CloudEvent's data (`violations.format`), or else the document itself.

    Raises TypeError or KeyError if it is neither.
    """
    return document["data"] if "specversion" in document else document


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12).

    It accepts additional fields, because later versions of sluicegate may add some.
    """
    schema = _object(EVENT_FIELDS)
    schema["properties"]["schema_version"] = {"const": SCHEMA_VERSION}
    schema["properties"]["time"]["format"] = "date-time"
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Violation event of sluicegate"}
    return head | schema


def _object(fields: tuple[EventField, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {field.name: _property(field) for field in fields},
        "required": [field.name for field in fields if not field.is_optional],
    }


def _property(field: EventField) -> dict[str, Any]:
    match field.type:
        case FieldType.ANY:
            return {}
        case FieldType.OBJECTS:
            return {"type": "array", "items": _object(field.fields)}
        case FieldType.STRINGS:
            return {"type": "array", "items": {"type": "string"}}
        case FieldType.OBJECT:
            found = _object(field.fields)
        case FieldType.INT:
            found = {"type": "integer", "minimum": -(1 << 31), "maximum": (1 << 31) - 1}
        case FieldType.LONG:
            found = {"type": "integer", "minimum": -(1 << 63), "maximum": (1 << 63) - 1}
        case FieldType.BOOLEAN:
            found = {"type": "boolean"}
        case FieldType.STRING:
            found = {"type": "string"}
    if field.is_nullable:
        found["type"] = [found["type"], "null"]
    return found
