"""The configuration file's JSON Schema, so that editors complete and check it as it is written (`sluicegate schema`).

It is the model's, as YAML looks to an editor. What only whole sections can tell (which keys belong together) and what
no schema knows (whether a file is there) is `sluicegate check`'s to say.
"""

import re
from typing import Any

from sluicegate.config.keys import is_optional, keys_of, section_of
from sluicegate.config.model import Config
from sluicegate.config.reading import json_schema_of
from sluicegate.config.reference.descriptions import KEYS, SECTIONS
from sluicegate.config.reference.json_schema_kinds import Schema
from sluicegate.config.reference.page import sections

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_LINKS = (
    (re.compile(r"\(\[[^]]*\]\(([\w.-]+)[^)]*\)\)"), r"(docs/\1)"),
    (re.compile(r"\[([^]]*)\]\(([\w.-]+)[^)]*\)"), r"\1 (docs/\2)"),
)
_NULL = {"type": "null"}


def schema_of_file() -> Schema:
    """Of the whole file."""
    made = json_schema_of(Config)
    described: Schema = {"": made, **made["$defs"]}
    _take_numbers(made)
    for name, section in sections():
        _describe(described["" if section is Config else section.__name__], section, name)
    del made["description"]
    return {"$schema": _DRAFT, **made, "title": "The configuration of sluicegate"}


def schema_of_topic_files() -> Schema:
    """Of the files that `topics_from` names."""
    whole = schema_of_file()
    topics = {"topics": whole["properties"]["topics"]}
    return {**whole, "title": "Topics for sluicegate", "properties": topics, "required": []}


def _take_numbers(made: Any) -> None:
    """A choice that looks like a number is one to an editor."""
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


def _describe(made: Schema, section: type[Any], name: str) -> None:
    """Say what each key is for, and that it may be left empty, where it may."""
    made.pop("title", None)
    made["description"] = _plain(SECTIONS[name])
    for key, annotation in keys_of(section).items():
        held = made["properties"][key]
        held.pop("title", None)
        if not isinstance(held.get("default"), str | int | float):
            held.pop("default", None)
        words = _words(f"{name}.{key}" if name else key)
        if words is not None:
            held["description"] = words
        is_needed = key in made.get("required", ())
        kinds = [kind for kind in held.pop("anyOf", None) or [_taken(held)] if kind != _NULL]
        if not is_needed and not (is_optional(annotation) and section_of(annotation) is not None):
            kinds.append(_NULL)  # a key with nothing behind it is as good as none
        held |= kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def _taken(held: Schema) -> Schema:
    """What a key takes, taken out of its description."""
    return {word: held.pop(word) for word in list(held) if word not in ("description", "default")}


def _words(name: str) -> str | None:
    name = name.replace("defaults.", "topics[].", 1) if name.startswith("defaults.") else name
    found: Any = KEYS.get(name) or SECTIONS.get(name) or SECTIONS.get(f"{name}[]")
    return _plain(found) if found is not None else None


def _plain(words: str) -> str:
    """The words of docs/configuration.md without what only a page can show."""
    for link, instead in _LINKS:
        words = link.sub(instead, words)
    return words
