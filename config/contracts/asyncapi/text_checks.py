"""Translates JSON Schemas of strings, such as headers and keys, to regular expressions and CEL."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from sluicegate.config.contracts.asyncapi.payloads import NotRead
from sluicegate.config.values.topic_pattern import check_expression

_UUID: Final = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_ANNOTATED_FORMATS: Final = frozenset({"byte", "binary", "password", "int32", "int64", "float", "double"})
_TYPES: Final = {
    "integer": r"-?(0|[1-9][0-9]*)(\.0+)?",
    "number": r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?",
    "boolean": "true|false",
}
_TRANSLATED: Final = frozenset(
    {
        *("title", "description", "default", "example", "examples", "deprecated", "readOnly", "writeOnly", "$comment"),
        *("externalDocs", "discriminator", "type", "enum", "const", "minLength", "maxLength", "pattern", "format"),
    }
)
_MOST_REPETITIONS = 1000
_MOST_CHARACTERS = 2000

Note = Callable[[str, str], None]
"""Receives a statement that has no effect, and the reason."""


def kind_of(schema: Mapping[str, Any]) -> str | None:
    """Return the only type of all non-null values, or None if the schema allows several types or any.

    Without `type`, the result is `string` if all listed values are strings, or if the only constraints are those for
    strings.
    """
    given = schema.get("type")
    if given is not None:
        kinds = [kind for kind in (given if isinstance(given, list) else [given]) if kind != "null"]
        return str(kinds[0]) if len(kinds) == 1 else None
    listed = _listed(schema)
    if listed is not None:
        return "string" if listed and all(isinstance(value, str) for value in listed) else None
    is_of_text = any(key in schema for key in ("minLength", "maxLength", "pattern"))
    return "string" if is_of_text else None


def expressions_of(schema: Mapping[str, Any], note: Note) -> Iterator[str]:
    """Yield regular expressions (RE2) for a value as a string. Each of them must match the whole string.

    `note` is called with each statement that has no effect.
    """
    kind = kind_of(schema)
    for key in sorted(schema.keys() - _TRANSLATED):
        if not key.startswith("x-"):
            note(key, "only single values are compared" if kind == "string" else "values are compared as text")
    if kind is None:
        if "type" in schema or _listed(schema) is not None:
            note("type", "the values are not of one type")
        return
    if kind != "string" and kind not in _TYPES:
        note(f"type {kind}", "only text, numbers and booleans are compared")
        return
    if kind in _TYPES:
        yield _TYPES[kind]
    listed = _listed(schema)
    if listed is not None:
        yield "|".join(re.escape(value if isinstance(value, str) else json.dumps(value)) for value in listed)
    if kind == "string":
        yield from _of_text(schema, note)


def condition_of(schema: Mapping[str, Any], variable: str, note: Note) -> str | None:
    """Return a CEL expression that is true if a string matches the schema; None if every string matches.

    `note` is called with each statement that has no effect. Raises NotRead if the expression is too long.
    """
    for key in sorted(schema.keys() - _TRANSLATED):
        if not key.startswith("x-"):
            note(key, "only single values are compared")
    parts = []
    listed = _listed(schema)
    if listed is not None:
        parts.append(f"{variable} in [{', '.join(map(_literal, filter(_is_text, listed)))}]")
    for key, sign in (("minLength", ">="), ("maxLength", "<=")):
        if isinstance(schema.get(key), int):
            parts.append(f"size({variable}) {sign} {schema[key]}")
    parts += [f"{variable}.matches({_literal(expression)})" for expression in _patterns(schema, note, "^({})$")]
    made = " && ".join(parts)
    if len(made) > _MOST_CHARACTERS:
        raise NotRead(f"its conditions have more than {_MOST_CHARACTERS} characters")
    return made or None


def _of_text(schema: Mapping[str, Any], note: Note) -> Iterator[str]:
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if isinstance(least, int) and least and least <= _MOST_REPETITIONS:
        yield f"(?s:.{{{least},}})"
    elif least:
        note("minLength", f"lengths above {_MOST_REPETITIONS} are not compared")
    if isinstance(most, int) and 0 <= most <= _MOST_REPETITIONS:
        yield f"(?s:.{{0,{most}}})"
    elif most is not None:
        note("maxLength", f"lengths above {_MOST_REPETITIONS} are not compared")
    yield from (each if whole else f"(?s:.*)({each})(?s:.*)" for each, whole in _patterns_of(schema, note))


def _patterns(schema: Mapping[str, Any], note: Note, of_whole: str) -> Iterator[str]:
    yield from (of_whole.format(each) if whole else each for each, whole in _patterns_of(schema, note))


def _patterns_of(schema: Mapping[str, Any], note: Note) -> Iterator[tuple[str, bool]]:
    """Yield each regular expression, and whether it must match the whole string."""
    pattern, form = schema.get("pattern"), schema.get("format")
    if isinstance(pattern, str):
        try:
            check_expression(pattern)
        except ValueError as error:
            note("pattern", str(error))
        else:
            yield pattern, False
    if form == "uuid":
        yield _UUID, True
    elif form is not None and str(form) not in _ANNOTATED_FORMATS:
        note(f"format {form}"[:100], "formats of text, except uuid, are not compared")


def _listed(schema: Mapping[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    listed = schema.get("enum")
    return listed if isinstance(listed, list) else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
