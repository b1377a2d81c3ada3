"""What the kinds of values are in JSON Schema: YAML as an editor sees it, where a text may look like a number.

What cannot be said of a text alone (a duration's bounds, whether a host exists) is left to `sluicegate check`.
"""

from dataclasses import dataclass, field
from typing import Any

_PORT = r"\d{1,5}"
_WORDS_OF_A_FLAG = ("true", "yes", "on", "false", "no", "off")

Schema = dict[str, Any]

TEXT: Schema = {"type": ["string", "number", "boolean"], "minLength": 1}
ADDRESS: Schema = {"type": "string", "pattern": rf"^\s*[^\s/@,]*:{_PORT}\s*$"}
FLAG: Schema = {
    "anyOf": [
        {"type": "boolean"},
        {"enum": [spell(word) for word in _WORDS_OF_A_FLAG for spell in (str.lower, str.capitalize, str.upper)]},
    ]
}


@dataclass(frozen=True, slots=True)
class Takes:
    """A note: what a key takes, in the words of docs/configuration.md."""

    words: str


@dataclass(frozen=True, slots=True)
class Told:
    """A note: what a kind is in the schema."""

    schema: Schema = field(hash=False)

    def __get_pydantic_json_schema__(self, _core: Any, _handler: Any) -> Schema:
        """For pydantic, which changes what it is given."""
        return dict(self.schema)


def told(schema: Schema) -> Told:
    """A note: what a kind is in the schema."""
    return Told(schema)


def one_or_more(item: Schema, fewest: int = 1) -> Schema:
    """A list, or one text, which may have commas between several."""
    return {"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": item, "minItems": fewest}]}
