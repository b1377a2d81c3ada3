"""Evaluates the conditions that a registry stores with a schema: `ruleSet.domainRules` of kind CONDITION.

Confluent's serializers evaluate these conditions before they write, unless a client disables this. A rule
(rule_sets.py) applies here if its mode is WRITE or WRITEREAD, it is not disabled, and it does not have `onFailure:
NONE`.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeVar

from sluicegate.validation.rules.rule import RuledRecord
from sluicegate.validation.rules.schemas.changed_fields import ChangeableField, ChangedFields
from sluicegate.validation.rules.schemas.field_tags import FieldChange, TagsByPattern
from sluicegate.validation.rules.simple_rule import SimpleRule

Clock = Callable[[], int]
"""Returns the time in ns since 1970."""


class ConditionLanguage(Enum):
    """The languages of conditions that the proxy evaluates."""

    CEL = "CEL"  # evaluated once, over the whole value
    CEL_FIELD = "CEL_FIELD"  # evaluated for each field


@dataclass(frozen=True, slots=True)
class SchemaCondition:
    """A condition on written records.

    `language` is a ConditionLanguage, or another language, which is not evaluated here.

    - `tags`: for CEL_FIELD, the condition applies to fields with one of these tags, or to all fields if this is empty.
    - `tags_by_pattern`: the tags that the schema's metadata gives to fields.
    - `changes`: later rules that change fields. The condition cannot be evaluated for these fields any more.
    - `is_about_bytes`: whether `message` stands for the serialized bytes, as in `encodingRules`.
    """

    name: str
    language: str
    text: str
    tags: frozenset[str] = frozenset()
    tags_by_pattern: TagsByPattern = ()
    changes: tuple[FieldChange, ...] = ()
    is_about_bytes: bool = False

    @property
    def expression(self) -> str:
        """Return the condition as a single expression.

        If it has a guard before a semicolon, the expression is true whenever the guard is false.
        """
        guard, semicolon, condition = self.text.partition(";")
        if not semicolon:
            return self.text
        return f"({guard}\n) ? ({condition}\n) : true" if guard.strip() else condition

    @property
    def is_about_fields(self) -> bool:
        """Return whether the condition is evaluated for each field."""
        return self.language == ConditionLanguage.CEL_FIELD.value


class NotEvaluated(SimpleRule):
    """A condition on fields that are encrypted, or that a later rule has changed (`ExpressionOfSchema`)."""

    def fault(self, _record: RuledRecord) -> str | None:
        """Return None, because the values to which the condition applies are not stored."""
        return None


_MESSAGE: Final = "message"
_VALUE: Final = "value"
Expression = TypeVar("Expression")
_WORDS: Final = re.compile(r"\w+")


def reads_changed(condition: SchemaCondition, fields: Iterable[ChangeableField]) -> bool:
    """Return whether a condition may read a part of `message` that a later rule changes. Return True if in doubt."""
    text = condition.text
    if condition.is_about_fields and _MESSAGE not in _WORDS.findall(text):
        return False  # the condition skips the changed fields
    return ChangedFields(condition.changes, fields).are_read(text, _MESSAGE)


def unless_read(encrypted: ChangedFields, text: str, expression: Expression) -> Expression | NotEvaluated:
    """Return an expression over `value`, or NotEvaluated if it may read an encrypted field."""
    return NotEvaluated() if encrypted.are_read(text, _VALUE) else expression
