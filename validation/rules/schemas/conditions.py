"""The conditions that a registry keeps with a schema: `ruleSet.domainRules` of kind CONDITION (data contracts).

Confluent's serializers evaluate them before they write, unless a client switches that off. A rule applies here if its
mode is WRITE or WRITEREAD, and if it is neither disabled nor has `onFailure: NONE`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_MODES: Final = frozenset({"WRITE", "WRITEREAD"})
_EVERYWHERE: Final = frozenset({"ALL", "CLIENT"})
_MOST_RULES = 100
_MOST_CHARACTERS = 10_000  # more than an expression may have


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on written records. `language`: CEL, or another one, which is not evaluated here."""

    name: str
    language: str
    text: str

    @property
    def expression(self) -> str:
        """Return the condition as one expression; with a guard before a semicolon, it holds if the guard is false."""
        guard, semicolon, condition = self.text.partition(";")
        if not semicolon:
            return self.text
        return f"({guard}\n) ? ({condition}\n) : true" if guard.strip() else condition


def conditions_in(rule_set: object) -> tuple[Condition, ...]:
    """Return the conditions of a registry's `ruleSet`. Raises ValueError if it cannot be read."""
    if rule_set is None:
        return ()
    if not isinstance(rule_set, Mapping):
        raise ValueError("its ruleSet cannot be read")
    rules = rule_set.get("domainRules") or ()
    if not isinstance(rules, Sequence) or not all(isinstance(rule, Mapping) for rule in rules):
        raise ValueError("the domainRules of its ruleSet cannot be read")
    if len(rules) > _MOST_RULES:
        raise ValueError(f"its ruleSet has more than {_MOST_RULES} domainRules")
    return tuple(_applying(rules)) if str(rule_set.get("enableAt") or "ALL") in _EVERYWHERE else ()


def _applying(rules: Sequence[Mapping[str, Any]]) -> Iterator[Condition]:
    for rule in rules:
        is_condition = rule.get("kind") == "CONDITION" and rule.get("mode") in _MODES
        if is_condition and not rule.get("disabled") and str(rule.get("onFailure")).partition(",")[0] != "NONE":
            language = str(rule.get("type")).upper()[:100]
            text = str(rule.get("expr") or "")[:_MOST_CHARACTERS]
            yield Condition(str(rule.get("name"))[:100], language, text)
