"""What rules of tests have in common: their fault is all that they report."""

from sluicegate.validation.rules.rule import RuledRecord


class InlineRule:
    """To be completed with `parts`, `is_slow` and `fault`."""

    def description(self, _record: RuledRecord) -> str | None:
        return None
