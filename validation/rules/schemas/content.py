"""Defines the interface of compiled schemas in all languages (`SchemaLanguage`). A schema finds faults in bytes."""

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
        """Return the data's full record name, as registries use it, or None if the schema has none."""

    def fault(self, data: bytes, budget: StepBudget) -> str | None:
        """Return the fault, as a phrase that follows "the value " or "the key ", or None. It quotes no content.

        Spends steps like RecordRule.fault.
        """

    def description(self, data: bytes, budget: StepBudget) -> str | None:
        """Return a longer message that replaces that of `fault`, with details of the first error.

        See RecordRule.description.
        """


@runtime_checkable
class HasFormats(Protocol):
    """A schema in a language in which formats may be annotations."""

    def annotating_formats(self, budget: StepBudget) -> Content:
        """Return the schema with formats as annotations. It is compiled only once.

        Spends steps like RecordRule.fault. Raises SchemaUnusable.
        """


@runtime_checkable
class HasJsonEncoding(Protocol):
    """An Avro schema that may describe data in JSON encoding."""

    def json_encoded(self) -> Content:
        """Return the schema for data in JSON encoding. It is created only once."""


def with_formats(content: Content, formats: Formats, budget: StepBudget) -> Content:
    """Return the schema with this meaning of formats.

    If the schema's language has no formats, returns the schema unchanged.
    """
    if formats is Formats.ASSERT or not isinstance(content, HasFormats):
        return content
    return content.annotating_formats(budget)


@runtime_checkable
class HasNativeContentCheck(Protocol):
    """A schema with a native check (native/questions.py)."""

    def ordinary(self, behind: int) -> BytesQuestion | None:
        """Return a check that is at least as strict as the schema, for the bytes after `behind` bytes of an id.

        All bytes that it accepts match the schema. Returns None if there is no such check.
        """


@runtime_checkable
class CompiledHere(Protocol):
    """A schema that another process may apply."""

    @property
    def compiled_here(self) -> Content | None:
        """Return the schema compiled in this process, or None if compiling it here is too costly."""


@runtime_checkable
class HasEncryptedFields(Protocol):
    """A schema from a registry that may have rules that encrypt fields."""

    @property
    def encrypted_names(self) -> frozenset[str]:
        """Return the names of the fields that serializers encrypt."""


class ExpressionOfSchema(Protocol):
    """A CEL expression, or another condition, over records whose value is only a schema's data. Thread-safe."""

    def fault(self, record: RuledRecord) -> str | None:
        """Return a record's fault, like RecordRule.fault; None if the value does not match the schema."""

    def description(self, record: RuledRecord) -> str | None:
        """Return a longer message that replaces that of `fault`, like RecordRule.description."""


@runtime_checkable
class HasExpressions(Protocol):
    """A schema that determines the type of `value` in an expression."""

    def expression(self, text: str) -> ExpressionOfSchema:
        """Return an expression over values of this schema. Raises RuleUnusable and SchemaError."""

    def condition(self, condition: SchemaCondition, now: Clock) -> ExpressionOfSchema:
        """Return a registry's condition in CEL or CEL_FIELD. Types are not checked in advance.

        `now` is the clock for the variable of that name. Raises RuleUnusable and SchemaError.
        """


@runtime_checkable
class HasConstraints(Protocol):
    """A schema that may have constraints on its values (`buf.validate`)."""

    def constraints(self) -> ExpressionOfSchema | None:
        """Return the constraints, or None if the language has none. Raises SchemaUnusable and Outage."""


@runtime_checkable
class ReadAsJson(Protocol):
    """A schema with values that can be converted to JSON (json_form.py)."""

    def follows_as_json(self, json_schema: str) -> ExpressionOfSchema:
        """Return the condition that this schema's values, as JSON, are valid against a JSON Schema.

        Raises RuleUnusable and SchemaError.
        """


@runtime_checkable
class HasJsonForm(Protocol):
    """A schema, compiled in this process, that converts its values to JSON."""

    def json_form(self) -> JsonForm:
        """Return the conversion of its values to JSON."""


class SchemaUnusable(RuleUnusable):
    """Raised if a schema cannot be compiled, or if a package is not installed. The message gives the reason."""
