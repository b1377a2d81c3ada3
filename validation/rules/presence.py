"""A key or a value must be there."""

from dataclasses import dataclass

from sluicegate.validation.rules.native.questions import BytesQuestion, OrdinaryQuestions, about
from sluicegate.validation.rules.rule import CONSTANT_STEPS, Part, RuledRecord
from sluicegate.validation.rules.side import Side


@dataclass(frozen=True, slots=True)
class Required:
    """Rejects null; what is empty is there."""

    side: Side

    @property
    def needs(self) -> Part:
        """Sizes are always known."""
        return Part.NONE

    @property
    def is_slow(self) -> bool:
        """A comparison."""
        return False

    def ordinary(self) -> OrdinaryQuestions:
        """All of it."""
        return about(self.side, BytesQuestion(required=True))

    def steps(self, _record: RuledRecord) -> int:
        """A comparison."""
        return CONSTANT_STEPS

    def complaint(self, record: RuledRecord) -> str | None:
        """Null, or nothing to say."""
        return f"the {self.side.value} is null; send one" if self.side.size_of(record) < 0 else None

    def explanation(self, _record: RuledRecord) -> str | None:
        """Its complaint is all of it."""
        return None
