"""A key or a value has bounds to its size."""

from dataclasses import dataclass

from sluicegate.validation.rules.native.questions import BytesQuestion, OrdinaryQuestions, about
from sluicegate.validation.rules.rule import CONSTANT_STEPS, Part, RuledRecord
from sluicegate.validation.rules.side import Side


@dataclass(frozen=True, slots=True)
class Size:
    """`least` and `most` bytes, both included; null has no size, and is `Required`'s to reject."""

    side: Side
    least: int = 0
    most: int | None = None

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
        most = BytesQuestion().most if self.most is None else self.most
        return about(self.side, BytesQuestion(least=self.least, most=most))

    def steps(self, _record: RuledRecord) -> int:
        """A comparison."""
        return CONSTANT_STEPS

    def complaint(self, record: RuledRecord) -> str | None:
        """Too small or too large."""
        size = self.side.size_of(record)
        if 0 <= size < self.least:
            return f"the {self.side.value} has {size} bytes, at least {self.least} are wanted"
        if self.most is not None and size > self.most:
            return f"the {self.side.value} has {size} bytes, at most {self.most} are allowed"
        return None

    def explanation(self, _record: RuledRecord) -> str | None:
        """Its complaint is all of it."""
        return None
