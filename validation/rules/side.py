"""Of which side of a record a rule speaks: its key or its value."""

from enum import Enum

from sluicegate.validation.rules.rule import Part, RuledRecord


class Side(Enum):
    """Named as messages name it."""

    KEY = "key"
    VALUE = "value"

    @property
    def part(self) -> Part:
        """What a rule needs that reads it."""
        return Part.KEY if self is Side.KEY else Part.VALUE

    def size_of(self, record: RuledRecord) -> int:
        """In bytes; -1 for null."""
        return record.key_size if self is Side.KEY else record.value_size

    def bytes_of(self, record: RuledRecord) -> bytes | None:
        """Its bytes, where the rule needs them."""
        return record.key if self is Side.KEY else record.value
