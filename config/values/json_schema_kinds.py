"""Defines the JSON Schemas of value types, as an editor sees YAML: a string may look like a number.

Other checks (a duration's bounds, whether a host exists) are left to `sluicegate check`.
"""

from dataclasses import dataclass, field
from typing import Any

_PORT = r"\d{1,5}"
_FLAG_WORDS = ("true", "yes", "on", "false", "no", "off")

Schema = dict[str, Any]

TEXT: Schema = {"type": ["string", "number", "boolean"], "minLength": 1}
ADDRESS: Schema = {"type": "string", "pattern": rf"^\s*[^\s/@,]*:{_PORT}\s*$"}
FLAG: Schema = {
    "anyOf": [
        {"type": "boolean"},
        {"enum": [spell(word) for word in _FLAG_WORDS for spell in (str.lower, str.capitalize, str.upper)]},
    ]
}


@dataclass(frozen=True, slots=True)
class Takes:
    """A type annotation with the accepted values, worded for docs/configuration.md."""

    words: str


@dataclass(frozen=True, slots=True)
class SchemaNote:
    """A type annotation with the JSON Schema of the type."""

    schema: Schema = field(hash=False)

    def __get_pydantic_json_schema__(self, _core: Any, _handler: Any) -> Schema:
        """Return the schema to pydantic, which modifies it."""
        return dict(self.schema)


@dataclass(frozen=True, slots=True)
class SectionsOrTexts:
    """A type annotation for a list of sections. Each section, and the list as a whole, may also be a string."""

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> Schema:
        """Return the schema to pydantic."""
        made = handler(core)
        return {"anyOf": [TEXT, {**made, "items": {"anyOf": [TEXT, made["items"]]}}]}


def schema_note(schema: Schema) -> SchemaNote:
    """Return a type annotation with the JSON Schema of a type."""
    return SchemaNote(schema)


def one_or_more(item: Schema, fewest: int = 1) -> Schema:
    """Return the schema of a list or of one comma-separated string."""
    return {"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": item, "minItems": fewest}]}
