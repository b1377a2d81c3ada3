"""Defines the checks with which native code tests whether a record's bytes are plainly good.

A rule with such a check implements `HasNativeCheck`. A topic stays on the fast path if all its rules have one. For
records that are not plainly good, the rules themselves decide and provide the messages.
"""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Protocol, runtime_checkable

from sluicegate.validation.rules.json.plan import JsonSchemaPlan
from sluicegate.validation.rules.rule import Side

_UNBOUNDED = (1 << 62) - 1


@dataclass(frozen=True, slots=True)
class AvroQuestion:
    """A check that the bytes after `behind` bytes of a schema id are one Avro datum.

    The datum must have the type at `root` of a plan (avro/plan.py).
    """

    numbers: "array[int]"
    root: int
    behind: int


@dataclass(frozen=True, slots=True)
class JsonSchemaQuestion:
    """A check that the bytes after `behind` bytes of a schema id are JSON that conforms to a plan (json/plan.py)."""

    plan: JsonSchemaPlan
    behind: int


@dataclass(frozen=True, slots=True)
class BytesQuestion:
    """The checks of a key or a value. `required` rejects null; the other checks apply to non-null bytes.

    `least` and `most` are sizes in bytes, inclusive. `is_text` requires UTF-8. `json_depth` is the nesting limit of
    JSON; 0 means that the bytes need not be JSON. `schemas` are all schemas that the bytes must match.
    """

    required: bool = False
    least: int = 0
    most: int = _UNBOUNDED
    is_text: bool = False
    json_depth: int = 0
    schemas: tuple[AvroQuestion | JsonSchemaQuestion, ...] = ()

    def both(self, other: "BytesQuestion") -> "BytesQuestion":
        """Return the combination of both."""
        depths = [depth for depth in (self.json_depth, other.json_depth) if depth]
        return BytesQuestion(
            self.required or other.required,
            max(self.least, other.least),
            min(self.most, other.most),
            self.is_text or other.is_text,
            min(depths, default=0),
            self.schemas + other.schemas,
        )


NOTHING = BytesQuestion()


@dataclass(frozen=True, slots=True)
class OrdinaryQuestions:
    """The checks of a batch and its records. `most_records` is the limit per batch."""

    key: BytesQuestion = NOTHING
    value: BytesQuestion = NOTHING
    most_records: int = _UNBOUNDED

    def both(self, other: "OrdinaryQuestions") -> "OrdinaryQuestions":
        """Return the combination of both."""
        return OrdinaryQuestions(
            self.key.both(other.key), self.value.both(other.value), min(self.most_records, other.most_records)
        )


@runtime_checkable
class HasNativeCheck(Protocol):
    """A rule with a native check."""

    def ordinary(self) -> OrdinaryQuestions | None:
        """Return a check that accepts only records that the rule accepts; None if the rule itself must run."""


def native_check_about(side: Side, question: BytesQuestion) -> OrdinaryQuestions:
    """Return the check for a key or a value."""
    return OrdinaryQuestions(key=question) if side is Side.KEY else OrdinaryQuestions(value=question)


def ordinary_questions(rules: Iterable[object]) -> OrdinaryQuestions | None:
    """Return a check for all rules, or None if one of them must run itself."""
    questions = [rule.ordinary() if isinstance(rule, HasNativeCheck) else None for rule in rules]
    known = [question for question in questions if question is not None]
    return reduce(OrdinaryQuestions.both, known, OrdinaryQuestions()) if len(known) == len(questions) else None
