"""What most rules have in common."""

from sluicegate.validation.rules.rule import CONSTANT_STEPS, RuledRecord


class SimpleRule:
    """A rule that compares a few numbers and whose `fault` has all details; see `RecordRule`. A rule overrides what is
    different, and adds `parts` and `fault`.
    """

    __slots__ = ()

    is_slow = False

    def cost(self, _record: RuledRecord) -> int:
        """Return the steps of a comparison."""
        return CONSTANT_STEPS

    def description(self, _record: RuledRecord) -> str | None:
        """Return None: there are no more details."""
        return None
