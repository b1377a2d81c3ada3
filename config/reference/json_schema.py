"""Builds the configuration file's JSON Schema, with which editors complete and check it (`sluicegate schema`).

The schema describes single keys. `sluicegate check` also checks combinations of keys, and whether files exist.
"""

import re
from typing import Any

from sluicegate.config.files.scopes import GRANTED, TOPICS
from sluicegate.config.keys import each_key_of, is_optional, section_of, takes_none
from sluicegate.config.loading import json_schema_of
from sluicegate.config.model import Config
from sluicegate.config.reference.page import DocumentedSection, sections, words_of
from sluicegate.config.values.json_schema_kinds import Schema
from sluicegate.config.values.quantity import NONE_SCHEMA

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_LINKS = (
    (re.compile(r"\(\[[^]]*\]\(([\w.-]+)[^)]*\)\)"), r"(docs/\1)"),
    (re.compile(r"\[([^]]*)\]\(([\w.-]+)[^)]*\)"), r"\1 (docs/\2)"),
)
_NULL = {"type": "null"}


def schema_of_file() -> Schema:
    """Return the schema of the whole file."""
    made = json_schema_of(Config)
    described: Schema = {"": made, **made["$defs"]}
    _take_numbers(made)
    for section in sections():
        _describe(described["" if section.model is Config else section.model.__name__], section)
    del made["description"]
    return {"$schema": _DRAFT, **made, "title": "The configuration of sluicegate"}


def schema_of_topic_files() -> Schema:
    """Return the schema of the files that `topic_files` names."""
    whole = schema_of_file()
    properties = {key: whole["properties"][key] for key in (TOPICS, *GRANTED)}
    properties["owner"] = whole["$defs"]["Topic"]["properties"]["owner"]
    return {**whole, "title": "Topics for sluicegate", "properties": properties, "required": []}


def _take_numbers(made: Any) -> None:
    """Allow a number as well as a string for each choice that looks like a number, because editors parse it as one."""
    if isinstance(made, dict):
        if "enum" in made:
            numbers = [int(choice) for choice in made["enum"] if isinstance(choice, str) and choice.isdecimal()]
            if numbers:
                made["enum"] += numbers
                made.pop("type", None)
        for held in made.values():
            _take_numbers(held)
    elif isinstance(made, list):
        for held in made:
            _take_numbers(held)


def _describe(made: Schema, section: DocumentedSection) -> None:
    """Add the description of each key, and allow null for keys that may be empty."""
    made.pop("title", None)
    made["description"] = _plain(section.description)
    for key in each_key_of(section.model):
        held = made["properties"][key.name]
        held.pop("title", None)
        if not isinstance(held.get("default"), str | int | float):
            held.pop("default", None)
        held["description"] = _plain(words_of(section.name, key))
        kinds = [kind for kind in held.pop("anyOf", None) or [_taken(held)] if kind != _NULL]
        if takes_none(key.annotation):
            kinds.append(NONE_SCHEMA)
        if not key.is_required and not (is_optional(key.annotation) and section_of(key.annotation) is not None):
            kinds.append(_NULL)  # an empty key has the same effect as a missing one
        held |= kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def _taken(held: Schema) -> Schema:
    """Remove the type from a key's schema and return it."""
    return {word: held.pop(word) for word in list(held) if word not in ("description", "default")}


def _plain(words: str) -> str:
    """Return a description from docs/configuration.md without links, which only a page can show."""
    for link, instead in _LINKS:
        words = link.sub(instead, words)
    return words
