"""What rules of tests have in common: they take few steps, and their complaint is all that they say."""

from sluicegate.validation.rules.rule import CONSTANT_STEPS, RuledRecord


class InlineRule:
    """To be completed with `needs`, `is_slow` and `complaint`."""

    def cost(self, _record: RuledRecord) -> int:
        return CONSTANT_STEPS

    def description(self, _record: RuledRecord) -> str | None:
        return None
