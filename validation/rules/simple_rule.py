"""What most rules have in common."""

from sluicegate.validation.rules.rule import RuledRecord


class SimpleRule:
    """A rule that asks nothing outside the process and whose `fault` has all details; see `RecordRule`. A rule adds
    `parts` and `fault`, and overrides what is different.
    """

    __slots__ = ()

    is_slow = False

    def description(self, _record: RuledRecord) -> str | None:
        """Return None: there are no more details."""
        return None
