"""Custom rules from installed packages: entry points of the group `sluicegate.rules`.

An entry point names a callable that takes the options of the configuration and returns a rule (`EntryPointRule`).
"""

from collections.abc import Mapping
from typing import Any, Protocol

from sluicegate.validation.rules.rule import CONSTANT_STEPS, UNBOUNDED, Outage, Part, RuledRecord, RuleUnusable

GROUP = "sluicegate.rules"
_MOST_WORDS = 500


class CustomRuleUnusable(RuleUnusable):
    """The rule does not exist, or cannot be created; the text gives the reason."""


class EntryPointRule(Protocol):
    """The object that an entry point returns (docs/policies.md)."""

    @property
    def parts(self) -> Part:
        """The parts that it reads."""

    @property
    def is_slow(self) -> bool:
        """Whether a record may take more than about ten microseconds."""

    def fault(self, record: RuledRecord) -> str | None:
        """Return the fault of a record, or None. Raises Outage."""


class CustomRule:
    """Wraps an operator's rule: its exceptions become an Outage with their position, and nothing from the record."""

    def __init__(self, entry_point: str, rule: EntryPointRule) -> None:
        self.parts = rule.parts
        self.is_slow = rule.is_slow
        self._entry_point = entry_point
        self._rule = rule

    def cost(self, _record: RuledRecord) -> int:
        """Return a bound according to `is_slow`."""
        return UNBOUNDED if self.is_slow else 10 * CONSTANT_STEPS

    def fault(self, record: RuledRecord) -> str | None:
        try:
            words = self._rule.fault(record)
        except Outage:
            raise
        except Exception as error:
            raise Outage(f"the rule {self._entry_point} failed: {type(error).__name__} at {place_of(error)}") from error
        if words is None:
            return None
        if not isinstance(words, str):
            raise Outage(f"the rule {self._entry_point} gave {type(words).__name__} instead of words or None")
        return words[:_MOST_WORDS]

    def description(self, _record: RuledRecord) -> str | None:
        """Return None: there are no more details."""
        return None


def custom_rule(entry_point: str, options: Mapping[str, Any]) -> CustomRule:
    """Return the rule of an entry point, created with `options`. Raises CustomRuleUnusable."""
    from importlib.metadata import entry_points  # noqa: PLC0415  # it imports the email package: 1 MB

    found = entry_points(group=GROUP)
    names = sorted(found.names)
    if entry_point not in names:
        known = ", ".join(names) or "none"
        raise CustomRuleUnusable(f"no entry point {entry_point} of {GROUP} is installed here; there is {known}")
    try:
        rule = found[entry_point].load()(options)
    except Exception as error:
        raise CustomRuleUnusable(f"{entry_point} cannot be made: {type(error).__name__}: {str(error)[:300]}") from error
    if not isinstance(getattr(rule, "parts", None), Part):
        raise CustomRuleUnusable(f"{entry_point} has no attribute parts of the type Part")
    if not isinstance(getattr(rule, "is_slow", None), bool):
        raise CustomRuleUnusable(f"{entry_point} has no attribute is_slow: True or False")
    if not callable(getattr(rule, "fault", None)):
        raise CustomRuleUnusable(f"{entry_point} has no method fault(record)")
    return CustomRule(entry_point, rule)


def place_of(error: BaseException) -> str:
    """Return the file and line that raised it, for the author of the rule."""
    trace = error.__traceback__
    if trace is None:
        return "no known place"
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
