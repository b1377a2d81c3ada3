"""Provides the base class of the tests' rules, which only report their fault."""

from sluicegate.validation.rules.rule import RuledRecord


class InlineRule:
    """A rule whose subclasses define `parts`, `is_slow` and `fault`."""

    def description(self, _record: RuledRecord) -> str | None:
        return None
