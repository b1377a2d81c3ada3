"""Custom rules from installed packages: entry points in the group `sluicegate.rules`.

An entry point names a callable that takes the options from the configuration and returns a rule (`EntryPointRule`).
"""

from collections.abc import Mapping
from typing import Any, Protocol

from sluicegate.validation.rules.rule import (
    UNBOUNDED,
    Outage,
    Part,
    RuledRecord,
    RuleUnusable,
    SchemaError,
)
from sluicegate.validation.rules.simple_rule import SimpleRule

GROUP = "sluicegate.rules"
_MOST_WORDS = 500
_STEPS = 100  # for a rule that takes at most about ten microseconds
_RENAMED = {"needs": "parts", "complaint": "fault"}


class CustomRuleUnusable(RuleUnusable):
    """Raised if the rule does not exist or cannot be created. The message gives the reason."""


class EntryPointRule(Protocol):
    """The object that an entry point returns (docs/rules.md)."""

    @property
    def parts(self) -> Part:
        """Return the parts that the rule reads."""

    @property
    def is_slow(self) -> bool:
        """Return whether a record may take more than about ten microseconds."""

    def fault(self, record: RuledRecord) -> str | None:
        """Return a record's fault, or None. Raises Outage if a dependency of the rule does not respond."""


class CustomRule(SimpleRule):
    """A wrapper for an operator's own rule.

    It turns the rule's exceptions into a SchemaError that names the position in the rule's code and quotes nothing from
    the record. A rule that fails on a record would fail on it again. The error is therefore permanent, as for built-in
    rules, and `on_schema_error` applies. Only the rule itself can raise an Outage.
    """

    def __init__(self, entry_point: str, rule: EntryPointRule) -> None:
        self.parts = rule.parts
        self.is_slow = rule.is_slow
        self._entry_point = entry_point
        self._rule = rule

    def fault(self, record: RuledRecord) -> str | None:
        record.budget.spend(UNBOUNDED if self.is_slow else _STEPS)
        try:
            words = self._rule.fault(record)
        except (Outage, MemoryError):  # not a fault of the rule
            raise
        except (Exception, SystemExit) as error:  # sys.exit() in a rule would terminate the proxy
            what = f"failed ({type(error).__name__} at {place_of(error)})"
            raise SchemaError(self._words(what, record)) from error
        if words is None:
            return None
        if not isinstance(words, str):
            raise SchemaError(self._words(f"returned {type(words).__name__} instead of a string or None", record))
        return words[:_MOST_WORDS]

    def _words(self, what: str, record: RuledRecord) -> str:
        return (
            f"the custom rule {self._entry_point} {what} on a record of {record.topic}: the fault is in the rule, not "
            f"in the record; its author must correct it"
        )


def custom_rule(entry_point: str, options: Mapping[str, Any]) -> CustomRule:
    """Return an entry point's rule, created with `options`. Raises CustomRuleUnusable."""
    from importlib.metadata import entry_points  # noqa: PLC0415  # it imports the email package: 1 MB

    found = entry_points(group=GROUP)
    names = sorted(found.names)
    if entry_point not in names:
        known = ", ".join(names) or "none"
        raise CustomRuleUnusable(f"no entry point {entry_point} of {GROUP} is installed here; installed: {known}")
    try:
        rule = found[entry_point].load()(options)
    except Exception as error:
        raise CustomRuleUnusable(
            f"{entry_point} cannot be created: {type(error).__name__}: {str(error)[:300]}"
        ) from error
    if old_names := old_names_of(rule):
        raise CustomRuleUnusable(f"{entry_point} {old_names}")
    if not isinstance(getattr(rule, "parts", None), Part):
        raise CustomRuleUnusable(f"{entry_point} has no attribute parts of the type Part")
    if not isinstance(getattr(rule, "is_slow", None), bool):
        raise CustomRuleUnusable(f"{entry_point} has no attribute is_slow: True or False")
    if not callable(getattr(rule, "fault", None)):
        raise CustomRuleUnusable(f"{entry_point} has no method fault(record)")
    return CustomRule(entry_point, rule)


def old_names_of(rule: object) -> str | None:
    """Return how to rename the names from earlier versions that a rule still uses, or None if it uses none."""
    wrong = [
        f"{old}, which is now {new}"
        for old, new in _RENAMED.items()
        if not hasattr(rule, new) and (isinstance(getattr(rule, old, None), Part) or callable(getattr(rule, old, None)))
    ]
    return f"has {', '.join(wrong)}: rename it" if wrong else None


def place_of(error: BaseException) -> str:
    """Return the file and line that raised the error, for the rule's author."""
    trace = error.__traceback__
    if trace is None:
        return "no known place"
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
