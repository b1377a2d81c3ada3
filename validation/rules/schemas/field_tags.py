"""Finds the tags of a schema's fields: inline tags, and tags in the metadata that a registry stores with the schema.

Inline tags are `confluent:tags` in Avro and JSON Schema, and `(confluent.field_meta).tags` in Protobuf.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

TAGS: Final = "confluent:tags"
_FIELD_META, _META_TAGS = 1088, 3  # confluent/meta.proto
_LENGTH = 2
_MOST_KEPT = 10_000
TagsByPattern = tuple[tuple[str, frozenset[str]], ...]
"""The tags in a schema's metadata: pairs of a pattern for fields' full names, and a set of tags."""


def inline_tags(schema: Any) -> frozenset[str]:
    """Return the tags of a field in an Avro record, or in the JSON Schema of a property."""
    found = schema.get(TAGS) if isinstance(schema, dict) else None
    return frozenset(each for each in found if isinstance(each, str)) if isinstance(found, list) else frozenset()


def protobuf_tags(field: Any) -> frozenset[str]:
    """Return a field's tags from its descriptor, or from the message that describes it."""
    options = (field.GetOptions() if hasattr(field, "GetOptions") else field.options).SerializeToString()
    tags = (tag for meta in fields_with_number(options, _FIELD_META) for tag in fields_with_number(meta, _META_TAGS))
    return frozenset(tag.decode(errors="replace") for tag in tags)


def fields_with_number(message: bytes, wanted: int) -> Iterator[bytes]:
    """Yield the length-delimited fields with the number `wanted` in a well-formed message."""
    if not message:
        return
    no_fields = import_module("google.protobuf.empty_pb2").Empty
    for field in import_module("google.protobuf.unknown_fields").UnknownFieldSet(no_fields.FromString(message)):
        if field.field_number == wanted and field.wire_type == _LENGTH:
            yield field.data


class FieldTags:
    """The tags that a schema's metadata gives to fields.

    In a pattern, `?` matches a character, `*` any characters except dots, and `**` any characters.
    """

    def __init__(self, by_pattern: TagsByPattern) -> None:
        self._by_pattern = [(_matcher(pattern), tags) for pattern, tags in by_pattern]
        self._known: dict[str, frozenset[str]] = {}

    def tags_of(self, full_name: str) -> frozenset[str]:
        """Return a field's tags, by its full name."""
        if not self._by_pattern:
            return frozenset()
        found = self._known.get(full_name)
        if found is None:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            matching = (tags for matches, tags in self._by_pattern if matches.fullmatch(full_name))
            found = self._known[full_name] = frozenset[str]().union(*matching)
        return found


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A rule that changes fields when a record is written: fields with one of `tags`, or all if `tags` is empty."""

    name: str
    tags: frozenset[str]
    tags_by_pattern: TagsByPattern = ()

    def applies_to(self) -> Callable[[str, frozenset[str]], bool]:
        """Return a function from a field's full name and inline tags to whether the rule changes the field."""
        by_pattern = FieldTags(self.tags_by_pattern)

        def applies(full_name: str, inline: frozenset[str]) -> bool:
            return not self.tags or not self.tags.isdisjoint(inline | by_pattern.tags_of(full_name))

        return applies


def _matcher(pattern: str) -> Any:
    """Return a matcher that takes linear time. Like Confluent's client, it reads `**.*` as `**`."""
    import re2  # noqa: PLC0415  # only for tags in metadata

    parts = re.split(r"(\*\*|\*|\?)", pattern.replace("**.*", "**"))
    wildcards = {"**": "(?s:.)*", "*": r"[^.]*", "?": r"[^.]"}
    return re2.compile("".join(wildcards.get(part) or re2.escape(part) for part in parts))
