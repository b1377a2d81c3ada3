"""What rules of tests have in common: they take few steps, and their fault is all that they report."""

from sluicegate.validation.rules.rule import CONSTANT_STEPS, RuledRecord


class InlineRule:
    """To be completed with `parts`, `is_slow` and `fault`."""

    def cost(self, _record: RuledRecord) -> int:
        return CONSTANT_STEPS

    def description(self, _record: RuledRecord) -> str | None:
        return None
