"""A rule: the key or the value follows a schema that stands in a file."""

from enum import Enum

from sluicegate.validation.rules.native.questions import OrdinaryQuestions, about
from sluicegate.validation.rules.rule import CONSTANT_STEPS, RuledRecord, SchemaError, Side
from sluicegate.validation.rules.schemas.content import Content, HasOrdinaryContent
from sluicegate.validation.rules.schemas.wire_format import ID_BYTES, has_schema_id


class Envelope(Enum):
    """What stands before the data itself."""

    NONE = "none"
    CONFLUENT = "confluent"  # a zero byte and a schema's id, which is not looked at


class FollowsSchema:
    """The key or value follows `content`. A null one passes: whether it may be null is another rule's."""

    def __init__(self, side: Side, content: Content, envelope: Envelope = Envelope.NONE) -> None:
        self.needs = side.part
        self.is_slow = content.is_slow
        self._side = side
        self._name = side.value
        self._read = side.bytes_of
        self._content = content
        self._begins = 0 if envelope is Envelope.NONE else ID_BYTES

    def ordinary(self) -> OrdinaryQuestions | None:
        """What its schema can be asked natively."""
        content = self._content
        question = content.ordinary(self._begins) if isinstance(content, HasOrdinaryContent) else None
        return None if question is None else about(self._side, question)

    def steps(self, record: RuledRecord) -> int:
        """Those of its schema."""
        data = self._read(record)
        return CONSTANT_STEPS if data is None else self._content.steps(data[self._begins :])

    def complaint(self, record: RuledRecord) -> str | None:
        data = self._read(record)
        if data is None:
            return None
        if self._begins:
            if not has_schema_id(data):
                return (
                    f"the {self._name} does not begin with a zero byte and a schema's id, as its serializer writes them"
                )
            data = data[self._begins :]
        try:
            fault = self._content.fault(data)
        except SchemaError as error:
            raise SchemaError(f"the schema of the {self._name} cannot be used: {error}") from error
        return None if fault is None else f"the {self._name} {fault}"

    def explanation(self, record: RuledRecord) -> str | None:
        """What its schema has to add."""
        data = self._read(record)
        if data is None or (self._begins and not has_schema_id(data)):
            return None
        explained = self._content.explanation(data[self._begins :])
        return None if explained is None else f"the {self._name} {explained}"
