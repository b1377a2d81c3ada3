"""Describes where and how a value violates a JSON Schema.

The messages contain the schema's paths, keywords and names, and the types that were found, but nothing that the client
wrote.
"""

from collections.abc import Sequence
from typing import Any, Final

from sluicegate.validation.rules.json.wanted import allowed_names, schema_value_text, wanted_phrase

_TYPES: Final = (
    (bool, "boolean"),
    (str, "string"),
    (int, "integer"),
    (float, "number"),
    (list, "array"),
    (dict, "object"),
)
_NOT_ALLOWED = "a property is not allowed"
_MOST_SHOWN = 100
_MOST_NAMES = 20
_MOST_BRANCHES = 20
_DEEPEST = 3
_TELLS_APART = frozenset({"const", "enum"})


class ErrorTexts:
    """The messages for one schema's errors. `properties` contains all names in it and in the schemas it refers to."""

    def __init__(self, schema: Any, properties: frozenset[str]) -> None:
        self._schema = schema
        self._properties = properties

    def text(self, error: Any) -> str:
        """Return the path, the keyword and its requirement."""
        return self._text(error, 0)

    def _text(self, error: Any, depth: int) -> str:
        path = "".join(f"/{part if self._is_known(part) else '…'}" for part in error.instance_path) or "the root"
        return f"{path[:200]}: {self._keyword(error, depth)}"

    def _is_known(self, part: str | int) -> bool:
        return isinstance(part, int) or part in self._properties

    def _keyword(self, error: Any, depth: int) -> str:
        kind, name = error.kind, str(error.kind.name)
        phrase = wanted_phrase(name, getattr(kind, "value", None))
        if phrase is not None:
            return f"{name} ({phrase}{self._described(error) if name == 'pattern' else ''})"
        if name == "type":
            return f"type (expected {' or '.join(sorted(kind.types))}, found {_type_of(error.instance)})"
        if name in ("additionalProperties", "unevaluatedProperties"):
            return f"{name} ({self._allowed(error)})"
        if name in ("oneOf", "anyOf"):
            return f"{name} ({self._branches(kind.context, len(error.instance_path), depth)})"
        if name == "not":
            return f"not (must not follow {schema_value_text(kind.schema)})"
        if name == "propertyNames":
            return f"propertyNames ({self._keyword(kind.error, depth + 1)})" if depth < _DEEPEST else name
        return name

    def _described(self, error: Any) -> str:
        """Return the description that the author of a pattern's schema wrote."""
        schema = self._schema_of(error)
        text = schema.get("description") if schema is not None else None
        return f", {schema_value_text(text)}" if isinstance(text, str) and text else ""

    def _schema_of(self, error: Any) -> dict[str, Any] | None:
        """Return the schema that contains the keyword, or None if it is reached through a reference."""
        schema = self._schema
        for step in [*error.schema_path][:-1]:
            try:
                schema = schema[step]
            except (LookupError, TypeError):
                return None
        return schema if isinstance(schema, dict) else None

    def _allowed(self, error: Any) -> str:
        schema = self._schema_of(error)
        if schema is None:
            return _NOT_ALLOWED
        looks_in_place = error.kind.name == "unevaluatedProperties"
        names = list(dict.fromkeys(allowed_names(schema, self._schema, looks_in_place)))
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        allowed = ", ".join(names[:_MOST_NAMES])[: 2 * _MOST_SHOWN] if names else "none by name"
        return f"{_NOT_ALLOWED}; allowed: {allowed}{more}"

    def _branches(self, branches: Sequence[Sequence[Any]], at: int, depth: int) -> str:
        count = len(branches)
        following = sum(1 for errors in branches if not errors)
        if following:
            return f"more than one of {count} schemas matches"
        best = min(range(min(count, _MOST_BRANCHES)), key=lambda i: _distance(branches[i], at), default=None)
        if best is None or depth >= _DEEPEST:
            return f"none of {count} schemas matches"
        return (
            f"none of {count} schemas matches; the nearest is number {best + 1}: "
            f"{self._text(branches[best][0], depth + 1)}"
        )


def _distance(errors: Sequence[Any], depth: int) -> tuple[bool, int, int]:
    """Return how far a value at `depth` is from matching a branch.

    Distances are compared by three things, in this order: whether the value is of another kind (its type, or a constant
    property that distinguishes branches), the number of errors, and how little of the value fits.
    """
    is_other_kind = any(
        error.kind.name == "type" if len(error.instance_path) == depth else error.kind.name in _TELLS_APART
        for error in errors
        if len(error.instance_path) <= depth + 1
    )
    return is_other_kind, len(errors), -max(len(error.instance_path) for error in errors)


def _type_of(value: Any) -> str:
    return next((name for kind, name in _TYPES if isinstance(value, kind)), "null")
