"""What a schema is to a rule, whatever its language (`SchemaLanguage`): it reports what is wrong with bytes."""

from enum import Enum
from typing import Protocol, runtime_checkable

from sluicegate.validation.rules.native.questions import BytesQuestion
from sluicegate.validation.rules.rule import RuleUnusable


class SchemaLanguage(Enum):
    """A language by its name in a registry."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


@runtime_checkable
class Content(Protocol):
    """A schema, compiled. Any thread may ask, several at once."""

    @property
    def is_slow(self) -> bool:
        """Whether a kilobyte may take it longer than some ten microseconds."""

    def record_name(self, data: bytes) -> str | None:
        """The full name of what the data is, as registries call it; None where the schema gives none."""

    def steps(self, data: bytes) -> int:
        """Return an upper bound of the steps that `fault` takes, as Rule.steps does."""

    def fault(self, data: bytes) -> str | None:
        """What is wrong, behind "the value " or "the key ": "is not JSON: ..."; None: nothing. It quotes no content."""

    def explanation(self, data: bytes) -> str | None:
        """Return a longer text in place of what `fault` has returned, as Rule.explanation does: the first error."""


@runtime_checkable
class HasOrdinaryContent(Protocol):
    """A schema that may be asked natively (ordinary_questions.py)."""

    def ordinary(self, behind: int) -> BytesQuestion | None:
        """What is good for the schema if it is good for this, `behind` so many bytes of an id; None: none is."""


class SchemaUnusable(RuleUnusable):
    """A schema cannot be compiled, or what it needs is not installed: its owner's fault. The text says why."""
