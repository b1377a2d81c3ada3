"""A key or a value must be text in UTF-8."""

from dataclasses import dataclass

from sluicegate.validation.rules.native.questions import BytesQuestion, OrdinaryQuestions, about
from sluicegate.validation.rules.rule import CONSTANT_STEPS, Part, RuledRecord
from sluicegate.validation.rules.side import Side


@dataclass(frozen=True, slots=True)
class Utf8:
    """As RFC 3629 has it: no overlong forms, no surrogates. Null is no text, and nothing is wrong with it."""

    side: Side

    @property
    def needs(self) -> Part:
        """The bytes."""
        return self.side.part

    @property
    def is_slow(self) -> bool:
        """Decoding takes less than looking at the bytes once more."""
        return False

    def ordinary(self) -> OrdinaryQuestions:
        """All of it."""
        return about(self.side, BytesQuestion(is_text=True))

    def steps(self, record: RuledRecord) -> int:
        """Decoding takes less than a nanosecond a byte."""
        return CONSTANT_STEPS + record.content_bytes // 100

    def complaint(self, record: RuledRecord) -> str | None:
        """Where it is not UTF-8."""
        data = self.side.bytes_of(record)
        if data is None or data.isascii():
            return None
        try:
            data.decode()
        except UnicodeDecodeError as error:
            return f"the {self.side.value} is not UTF-8 from byte {error.start} on; encode it as UTF-8"
        return None

    def explanation(self, _record: RuledRecord) -> str | None:
        """Its complaint is all of it."""
        return None
