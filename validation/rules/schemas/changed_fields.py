"""Determines what expressions may read if TRANSFORM rules change fields before a record is written.

Confluent's serializers evaluate an expression either before or after such a change. Its result for the stored record is
therefore certain only if it reads nothing that is changed.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from sluicegate.validation.rules.schemas.field_tags import FieldChange

_ANY: Final = frozenset({"changed"})
_WORDS: Final = re.compile(r"\w+")
# A use of a part of an object: a named field that is not a macro or a function, or a constant key.
_PART: Final = r"\s*(?:\.\s*\w+(?!\w|\s*\()|\[\s*(['\"])[^'\"\\]*\1\s*\])"


class ChangeableField(NamedTuple):
    """A field in a schema that a rule may change.

    `tags` are its inline tags. `holds_fields` is whether its values may contain other fields.
    """

    full_name: str
    name: str
    tags: frozenset[str]
    holds_fields: bool


class ChangedFields:
    """The fields of one schema that `changes` change, by their names. False if there are none."""

    def __init__(self, changes: Sequence[FieldChange], fields: Iterable[ChangeableField]) -> None:
        appliers = [each.applies_to() for each in changes]
        found = list(fields) if appliers else []
        self.names = frozenset(
            field.name for field in found if any(applies(field.full_name, field.tags) for applies in appliers)
        )
        self._holders = frozenset(field.name for field in found if field.holds_fields)

    def __bool__(self) -> bool:
        return bool(self.names)

    def in_json(self) -> tuple[FieldChange, ...]:
        """Return a change of all properties with the names of these fields, for data that are written as JSON."""
        return tuple(FieldChange(name, _ANY, ((f"**.{name}", _ANY),)) for name in sorted(self.names))

    def are_read(self, text: str, variable: str) -> bool:
        """Return whether an expression over an object named `variable` may read a changed field."""
        return bool(self.names) and (_is_used_whole(variable, text) or self._are_named(text))

    def are_read_from(self, field: str, text: str, variable: str) -> bool:
        """Return whether an expression over a field's value, named `variable`, may read a changed field."""
        if field in self.names:
            return True
        return self.are_read(text, variable) if field in self._holders else bool(self.names) and self._are_named(text)

    def _are_named(self, text: str) -> bool:
        """Return whether an expression names a changed field, or uses a whole object that may contain one."""
        words = frozenset(_WORDS.findall(text))
        if "\\" in text or any(name in words or (not name.isidentifier() and name in text) for name in self.names):
            return True
        return any(_is_used_whole(name, text) for name in self._holders if name in text)


def _is_used_whole(name: str, text: str) -> bool:
    """Return whether an expression uses an object in any way other than reading one of its fields."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)(?!{_PART})", text) is not None
