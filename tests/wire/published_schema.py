"""Validates events against docs/violation-event.schema.json. A field that is not in the schema is a problem, too."""

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

_SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "violation-event.schema.json").read_text())


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with further fields forbidden."""
    closed = dict(schema)
    if "properties" in schema:
        closed["properties"] = {name: _closed(each) for name, each in schema["properties"].items()}
        closed["additionalProperties"] = False
    if "items" in schema:
        closed["items"] = _closed(schema["items"])
    return closed


_VALIDATOR = Draft202012Validator(_closed(_SCHEMA))


def schema_mismatches(event: dict[str, Any]) -> list[str]:
    """Return why an event does not match the published schema."""
    return [f"{error.json_path}: {error.message}" for error in _VALIDATOR.iter_errors(event)]
