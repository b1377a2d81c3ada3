"""Parses an Avro schema and finds its named types, as Java's parser does.

Like Java's parser (Avro 1.12), it accepts comments, does not check the defaults of existing schemas, and resolves names
that are defined later. It ignores aliases, documentation, order and inapplicable logical types. It does not check the
characters in names.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sluicegate.validation.rules.schemas.content import SchemaUnusable

NAMED: Final = frozenset({"record", "error", "enum", "fixed"})
DEEPEST: Final = 200
_COMMENT: Final = re.compile(r'("(?:[^"\\]|\\.)*")|/\*.*?\*/|//[^\r\n]*', re.DOTALL)


@dataclass(frozen=True, slots=True)
class NamedType:
    """A record, enum or fixed type. `namespace` applies to the names inside it; it may be empty."""

    name: str
    namespace: str
    schema: Mapping[str, Any]


def read_schema(text: str) -> Any:
    """Parse a schema's JSON, which may have comments (`//`, `/* */`). Raises ValueError and RecursionError."""
    try:
        return json.loads(text)
    except ValueError:
        if "/*" not in text and "//" not in text:
            raise
        return json.loads(_COMMENT.sub(lambda found: found[1] or " ", text))


def named_type(schema: Mapping[str, Any], namespace: str) -> NamedType:
    """Return the full name of a named type within `namespace`. Raises SchemaUnusable."""
    name, given = schema.get("name"), schema.get("namespace")
    if not isinstance(name, str) or not name.rpartition(".")[2]:
        raise SchemaUnusable(f"a type of kind {schema['type']} has no name")
    before, dot, _ = name.rpartition(".")
    space = before if dot else given if isinstance(given, str) else namespace
    short = name.rpartition(".")[2]
    return NamedType(f"{space}.{short}" if space else short, space, schema)


def find_named_types(schema: Any, namespace: str, found: dict[str, NamedType], depth: int = 0) -> None:
    """Add all named types in a schema to `found`.

    If a name is defined twice, the first definition applies. Raises SchemaUnusable.
    """
    if depth > DEEPEST:
        raise SchemaUnusable("the schema is too large, or nested too deeply")
    if isinstance(schema, list):
        for branch in schema:
            find_named_types(branch, namespace, found, depth + 1)
        return
    if not isinstance(schema, dict):
        return
    kind = schema.get("type")
    if not isinstance(kind, str):
        find_named_types(kind, namespace, found, depth + 1)
    elif kind in NAMED:
        one = named_type(schema, namespace)
        found.setdefault(one.name, one)
        fields = schema.get("fields")
        for field in fields if isinstance(fields, list) else ():
            if isinstance(field, dict):
                find_named_types(field.get("type"), one.namespace, found, depth + 1)
    else:
        for inner in ("items", "values"):
            find_named_types(schema.get(inner), namespace, found, depth + 1)
