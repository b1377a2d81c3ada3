"""What of rules can be asked natively, of a record's bytes where they lie: only whether it is plainly good.

A rule that can be asked so says its question (`HasOrdinary`); topics whose rules all can stay on the fast path. Who is
not plainly good is left to the rules themselves, which decide, and have the words.
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
    """Whether bytes are one datum of the type at `root` of a plan (avro_plan.py), `behind` the bytes of a schema's id.

    None stands there where that is 0.
    """

    numbers: "array[int]"
    root: int
    behind: int


@dataclass(frozen=True, slots=True)
class JsonSchemaQuestion:
    """Whether bytes are JSON that follows a plan (json_schema_plan.py), `behind` the bytes of a schema's id."""

    plan: JsonSchemaPlan
    behind: int


@dataclass(frozen=True, slots=True)
class BytesQuestion:
    """Of a key or a value: `required` rejects null, anything else is asked of what is not null.

    `least`, `most`: bytes, both included. `is_text`: UTF-8. `json_depth`: how deep JSON may be nested; 0: it need not
    be JSON. `schemas`: what follows each of these.
    """

    required: bool = False
    least: int = 0
    most: int = _UNBOUNDED
    is_text: bool = False
    json_depth: int = 0
    schemas: tuple[AvroQuestion | JsonSchemaQuestion, ...] = ()

    def both(self, other: "BytesQuestion") -> "BytesQuestion":
        """What is good for both."""
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
    """Of a batch and its records. `most_records` of a batch."""

    key: BytesQuestion = NOTHING
    value: BytesQuestion = NOTHING
    most_records: int = _UNBOUNDED

    def both(self, other: "OrdinaryQuestions") -> "OrdinaryQuestions":
        """What is good for both."""
        return OrdinaryQuestions(
            self.key.both(other.key), self.value.both(other.value), min(self.most_records, other.most_records)
        )


@runtime_checkable
class HasOrdinary(Protocol):
    """A rule that may be asked natively."""

    def ordinary(self) -> OrdinaryQuestions | None:
        """What is good for the rule if it is good for this; None: the rule has to be asked."""


def about(side: Side, question: BytesQuestion) -> OrdinaryQuestions:
    """One that is asked of a key or of a value."""
    return OrdinaryQuestions(key=question) if side is Side.KEY else OrdinaryQuestions(value=question)


def ordinary_questions(rules: Iterable[object]) -> OrdinaryQuestions | None:
    """What is good for all of the rules; None where one has to be asked itself."""
    questions = [rule.ordinary() if isinstance(rule, HasOrdinary) else None for rule in rules]
    known = [question for question in questions if question is not None]
    return reduce(OrdinaryQuestions.both, known, OrdinaryQuestions()) if len(known) == len(questions) else None
