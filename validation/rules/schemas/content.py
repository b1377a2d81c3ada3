"""The interface of compiled schemas in any language (`SchemaLanguage`): they report faults in bytes."""

from enum import Enum
from typing import Protocol, runtime_checkable

from sluicegate.validation.rules.native.questions import BytesQuestion
from sluicegate.validation.rules.rule import RuledRecord, RuleUnusable, StepBudget
from sluicegate.validation.rules.schemas.conditions import SchemaCondition
from sluicegate.validation.rules.schemas.json_form import JsonForm


class SchemaLanguage(Enum):
    """A schema language, by its name in a registry."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


class Formats(Enum):
    """The meaning of `format` in a JSON Schema: a check of the value, or an annotation without effect."""

    ASSERT = "assert"
    ANNOTATE = "annotate"


@runtime_checkable
class Content(Protocol):
    """A compiled schema. Thread-safe."""

    @property
    def is_slow(self) -> bool:
        """Whether a kilobyte may take more than about ten microseconds."""

    def record_name(self, data: bytes) -> str | None:
        """Return the full record name of the data, as registries use it; None if the schema has none."""

    def fault(self, data: bytes, budget: StepBudget) -> str | None:
        """Return the fault, as a phrase after "the value " or "the key ", without content; None if there is none.

        Spends as RecordRule.fault does.
        """

    def description(self, data: bytes, budget: StepBudget) -> str | None:
        """Return a longer text instead of that of `fault`, like RecordRule.description: the first error in detail."""


@runtime_checkable
class HasFormats(Protocol):
    """A schema in a language with formats that may be annotations."""

    def annotating_formats(self, budget: StepBudget) -> Content:
        """Return the schema with formats as annotations; it is compiled once. Spends as RecordRule.fault does.

        Raises SchemaUnusable.
        """


@runtime_checkable
class HasJsonEncoding(Protocol):
    """An Avro schema, whose data may be in JSON encoding."""

    def json_encoded(self) -> Content:
        """Return the schema for data in JSON encoding; it is made once."""


def with_formats(content: Content, formats: Formats, budget: StepBudget) -> Content:
    """Return the schema in which formats have this meaning; that of a language without formats as it is."""
    if formats is Formats.ASSERT or not isinstance(content, HasFormats):
        return content
    return content.annotating_formats(budget)


@runtime_checkable
class HasNativeContentCheck(Protocol):
    """A schema with a native check (native/questions.py)."""

    def ordinary(self, behind: int) -> BytesQuestion | None:
        """Return a check whose good bytes follow the schema, after `behind` bytes of an id; None: there is none."""


@runtime_checkable
class CompiledHere(Protocol):
    """A schema that another process may apply."""

    @property
    def compiled_here(self) -> Content | None:
        """The schema in this process; None if it is too costly to compile here."""


class ExpressionOfSchema(Protocol):
    """A CEL expression, or another condition, over records whose value is bare data of a schema. Thread-safe."""

    def fault(self, record: RuledRecord) -> str | None:
        """Return the fault of a record, as RecordRule.fault does; None if the value does not follow the schema."""

    def description(self, record: RuledRecord) -> str | None:
        """Return a longer text that replaces that of `fault`, as RecordRule.description does."""


@runtime_checkable
class HasExpressions(Protocol):
    """A schema that gives `value` of an expression its type."""

    def expression(self, text: str) -> ExpressionOfSchema:
        """Return an expression over values of this schema. Raises RuleUnusable and SchemaError."""

    def condition(self, condition: SchemaCondition) -> ExpressionOfSchema:
        """Return a registry's condition in CEL or CEL_FIELD. No type is checked beforehand.

        Raises RuleUnusable and SchemaError.
        """


@runtime_checkable
class HasConstraints(Protocol):
    """A schema that may have constraints on its values (`buf.validate`)."""

    def constraints(self) -> ExpressionOfSchema | None:
        """Return the constraints; None: its language has none. Raises SchemaUnusable and Outage."""


@runtime_checkable
class ReadAsJson(Protocol):
    """A schema of values that can be written as JSON (json_form.py)."""

    def follows_as_json(self, json_schema: str) -> ExpressionOfSchema:
        """Return the condition that values of this schema, as JSON, follow a JSON Schema.

        Raises RuleUnusable and SchemaError.
        """


@runtime_checkable
class HasJsonForm(Protocol):
    """A schema, compiled in this process, that writes its values as JSON."""

    def json_form(self) -> JsonForm:
        """Return the JSON form of its values."""


class SchemaUnusable(RuleUnusable):
    """A schema cannot be compiled, or a package is not installed; the text gives the reason."""
