"""Checks that a key or value matches a schema from a file."""

from collections.abc import Sequence
from enum import Enum

from sluicegate.validation.rules.native.questions import OrdinaryQuestions, native_check_about
from sluicegate.validation.rules.rule import RuledRecord, SchemaError, Side, StepBudget
from sluicegate.validation.rules.schemas.content import Content, HasNativeContentCheck
from sluicegate.validation.rules.schemas.looking_ahead import look_ahead
from sluicegate.validation.rules.schemas.wire_format import ID_BYTES, has_schema_id


class Envelope(Enum):
    """The bytes before the data."""

    NONE = "none"
    CONFLUENT = "confluent"  # a zero byte and a schema id, which is not checked


class FollowsSchema:
    """A rule that requires the key or value to match `content`. Null passes (see the rule `required`)."""

    def __init__(self, side: Side, content: Content, envelope: Envelope = Envelope.NONE) -> None:
        self.parts = side.part
        self.is_slow = content.is_slow
        self._side = side
        self._name = side.value
        self._read = side.bytes_of
        self._content = content
        self._begins = 0 if envelope is Envelope.NONE else ID_BYTES

    def ordinary(self) -> OrdinaryQuestions | None:
        """Return the schema's native check."""
        content = self._content
        question = content.ordinary(self._begins) if isinstance(content, HasNativeContentCheck) else None
        return None if question is None else native_check_about(self._side, question)

    def fault(self, record: RuledRecord) -> str | None:
        data = self._read(record)
        if data is None:
            return None
        if self._begins:
            if not has_schema_id(data):
                return f"the {self._name} does not begin with a zero byte and a schema id, which its serializer writes"
            data = data[self._begins :]
        try:
            fault = self._content.fault(data, record.budget)
        except SchemaError as error:
            raise SchemaError(f"the schema of the {self._name} cannot be used: {error}") from error
        return None if fault is None else f"the {self._name} {fault}{self._hint_for(data)}"

    def _hint_for(self, data: bytes) -> str:
        """Return a hint for invalid data that a registry's serializer has probably written."""
        if self._begins or not has_schema_id(data):
            return ""
        return (
            "; it begins with a zero byte and an id, which serializers of a schema registry write: set "
            "schema.envelope: confluent or schema.registry in the rule"
        )

    def look_ahead(self, records: Sequence[RuledRecord], budget: StepBudget) -> None:
        """Validate several records together."""
        look_ahead(map(self.known_content, records), budget)

    def known_content(self, record: RuledRecord) -> tuple[Content, bytes] | None:
        """Return the schema and the data after the envelope; None for null, or if the envelope is missing."""
        data = self._read(record)
        if data is None or (self._begins and not has_schema_id(data)):
            return None
        return self._content, data[self._begins :]

    def content(self, record: RuledRecord) -> tuple[Content, bytes, str] | None:
        """Return the same as `known_content`, and the schema's name in messages."""
        found = self.known_content(record)
        return None if found is None else (*found, f"the schema of the {self._name}")

    def description(self, record: RuledRecord) -> str | None:
        """Return the schema's explanation."""
        data = self._read(record)
        if data is None or (self._begins and not has_schema_id(data)):
            return None
        explained = self._content.description(data[self._begins :], record.budget)
        return None if explained is None else f"the {self._name} {explained}"
