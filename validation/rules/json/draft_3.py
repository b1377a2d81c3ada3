"""The metaschema of draft 3, to which schemas of that draft may refer. jsonschema-rs lacks it.

Keywords that do not affect validation (`default`, `title`) are omitted.
"""

from typing import Any, Final

DRAFT_3: Final = "http://json-schema.org/draft-03/schema"
METASCHEMA_NAME: Final = "urn:sluicegate:draft-3"
"""Stands for DRAFT_3 in references. jsonschema-rs retrieves no schema with a name under json-schema.org."""

_SCHEMA: Final = {"$ref": "#"}
_SCHEMAS: Final = {"type": "object", "additionalProperties": _SCHEMA}
_SCHEMA_OR_BOOLEAN: Final = {"type": [_SCHEMA, "boolean"]}
_SCHEMA_OR_LIST: Final = {"type": [_SCHEMA, "array"], "items": _SCHEMA}
_TYPES: Final = {"type": ["string", "array"], "items": {"type": ["string", _SCHEMA]}, "uniqueItems": True}
_COUNT: Final = {"type": "integer", "minimum": 0}
_BOOLEAN, _NUMBER, _TEXT = {"type": "boolean"}, {"type": "number"}, {"type": "string"}

METASCHEMA: Final[dict[str, Any]] = {
    "$schema": f"{DRAFT_3}#",
    "type": "object",
    "properties": {
        "type": _TYPES,
        "disallow": _TYPES,
        "properties": _SCHEMAS,
        "patternProperties": _SCHEMAS,
        "additionalProperties": _SCHEMA_OR_BOOLEAN,
        "additionalItems": _SCHEMA_OR_BOOLEAN,
        "items": _SCHEMA_OR_LIST,
        "extends": _SCHEMA_OR_LIST,
        "required": _BOOLEAN,
        "dependencies": {
            "type": "object",
            "additionalProperties": {"type": ["string", "array", _SCHEMA], "items": _TEXT},
        },
        "minimum": _NUMBER,
        "maximum": _NUMBER,
        "exclusiveMinimum": _BOOLEAN,
        "exclusiveMaximum": _BOOLEAN,
        "minItems": _COUNT,
        "maxItems": _COUNT,
        "uniqueItems": _BOOLEAN,
        "pattern": {"type": "string", "format": "regex"},
        "minLength": _COUNT,
        "maxLength": {"type": "integer"},
        "enum": {"type": "array", "minItems": 1, "uniqueItems": True},
        "title": _TEXT,
        "description": _TEXT,
        "format": _TEXT,
        "divisibleBy": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
        "id": _TEXT,
        "$ref": _TEXT,
        "$schema": {"type": "string", "format": "uri"},
    },
    "dependencies": {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"},
}
