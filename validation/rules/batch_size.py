"""At most so many records a batch."""

from dataclasses import dataclass

from sluicegate.validation.rules.native.questions import OrdinaryQuestions
from sluicegate.validation.rules.rule import CONSTANT_STEPS, Part, RuledRecord


@dataclass(frozen=True, slots=True)
class MostRecords:
    """Told once, of the first record that is too many."""

    most: int

    @property
    def needs(self) -> Part:
        """A record's place is always known."""
        return Part.NONE

    @property
    def is_slow(self) -> bool:
        """A comparison."""
        return False

    def ordinary(self) -> OrdinaryQuestions:
        """All of it."""
        return OrdinaryQuestions(most_records=self.most)

    def steps(self, _record: RuledRecord) -> int:
        """A comparison."""
        return CONSTANT_STEPS

    def complaint(self, record: RuledRecord) -> str | None:
        """Too many."""
        if record.index != self.most:
            return None
        return f"the batch has more than {self.most} records; have the producer send smaller batches (batch.size)"

    def explanation(self, _record: RuledRecord) -> str | None:
        """Its complaint is all of it."""
        return None
