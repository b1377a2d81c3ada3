"""The base of the rules in tests, which report only their fault."""

from sluicegate.validation.rules.rule import RuledRecord


class InlineRule:
    """A rule whose subclasses define `parts`, `is_slow` and `fault`."""

    def description(self, _record: RuledRecord) -> str | None:
        return None
