"""Provides the defaults that most rules share."""

from sluicegate.validation.rules.rule import RuledRecord


class SimpleRule:
    """A rule that looks nothing up outside the process, and whose `fault` contains all details; see `RecordRule`.

    A subclass adds `parts` and `fault`, and overrides the other defaults if necessary.
    """

    __slots__ = ()

    is_slow = False

    def description(self, _record: RuledRecord) -> str | None:
        """Return None, because there are no more details."""
        return None
