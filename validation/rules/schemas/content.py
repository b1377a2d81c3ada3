"""Defines the interface of compiled schemas in all languages (`SchemaLanguage`). A schema reports faults in bytes."""

from enum import Enum
from typing import Protocol, runtime_checkable

from sluicegate.validation.rules.native.questions import BytesQuestion
from sluicegate.validation.rules.rule import RuledRecord, RuleUnusable, StepBudget
from sluicegate.validation.rules.schemas.conditions import Clock, SchemaCondition
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
        """Return whether a kilobyte may take more than about ten microseconds."""

    def record_name(self, data: bytes) -> str | None:
        """Return the full record name of the data, as registries use it; None if the schema has none."""

    def fault(self, data: bytes, budget: StepBudget) -> str | None:
        """Return the fault, as a phrase after "the value " or "the key ", without content; None if there is none.

        Spends steps as RecordRule.fault does.
        """

    def description(self, data: bytes, budget: StepBudget) -> str | None:
        """Return a longer text that replaces the text of `fault`, like RecordRule.description: the first error in
        detail.
        """


@runtime_checkable
class HasFormats(Protocol):
    """A schema in a language whose formats may be annotations."""

    def annotating_formats(self, budget: StepBudget) -> Content:
        """Return the schema with formats as annotations, which is compiled only once.

        Spends steps as RecordRule.fault does. Raises SchemaUnusable.
        """


@runtime_checkable
class HasJsonEncoding(Protocol):
    """An Avro schema, whose data may be in JSON encoding."""

    def json_encoded(self) -> Content:
        """Return the schema for data in JSON encoding, which is created only once."""


def with_formats(content: Content, formats: Formats, budget: StepBudget) -> Content:
    """Return the schema in which formats have this meaning. A schema in a language without formats is returned
    unchanged.
    """
    if formats is Formats.ASSERT or not isinstance(content, HasFormats):
        return content
    return content.annotating_formats(budget)


@runtime_checkable
class HasNativeContentCheck(Protocol):
    """A schema with a native check (native/questions.py)."""

    def ordinary(self, behind: int) -> BytesQuestion | None:
        """Return a check whose good bytes follow the schema, after `behind` bytes of an id; None if there is no such
        check.
        """


@runtime_checkable
class CompiledHere(Protocol):
    """A schema that another process may apply."""

    @property
    def compiled_here(self) -> Content | None:
        """Return the schema in this process; None if compiling it here is too costly."""


@runtime_checkable
class HasEncryptedFields(Protocol):
    """A schema whose registry may have rules that encrypt fields."""

    @property
    def encrypted_names(self) -> frozenset[str]:
        """Return the names of the fields that serializers encrypt."""


class ExpressionOfSchema(Protocol):
    """A CEL expression, or another condition, over records whose value is bare data of a schema. Thread-safe."""

    def fault(self, record: RuledRecord) -> str | None:
        """Return the fault of a record, as RecordRule.fault does; None if the value does not follow the schema."""

    def description(self, record: RuledRecord) -> str | None:
        """Return a longer text that replaces the text of `fault`, as RecordRule.description does."""


@runtime_checkable
class HasExpressions(Protocol):
    """A schema that determines the type of `value` in an expression."""

    def expression(self, text: str) -> ExpressionOfSchema:
        """Return an expression over values of this schema. Raises RuleUnusable and SchemaError."""

    def condition(self, condition: SchemaCondition, now: Clock) -> ExpressionOfSchema:
        """Return a registry's condition in CEL or CEL_FIELD. Types are not checked in advance.

        `now` is the clock of the variable with that name. Raises RuleUnusable and SchemaError.
        """


@runtime_checkable
class HasConstraints(Protocol):
    """A schema that may have constraints on its values (`buf.validate`)."""

    def constraints(self) -> ExpressionOfSchema | None:
        """Return the constraints; None if the language has none. Raises SchemaUnusable and Outage."""


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
    """Raised if a schema cannot be compiled, or if a package is not installed. The text gives the reason."""
