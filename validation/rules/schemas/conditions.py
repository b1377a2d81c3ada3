"""The conditions that a registry keeps with a schema: `ruleSet.domainRules` of kind CONDITION (data contracts).

Confluent's serializers evaluate them before they write, unless a client switches that off. A rule applies here if its
mode is WRITE or WRITEREAD, and if it is neither disabled nor has `onFailure: NONE`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from sluicegate.validation.rules.schemas.field_tags import TagsByPattern

_MODES: Final = frozenset({"WRITE", "WRITEREAD"})
_EVERYWHERE: Final = frozenset({"ALL", "CLIENT"})
_MOST_RULES = 100
_MOST_CHARACTERS = 10_000  # more than an expression may have
_MOST_TAGS = 1_000


class ConditionLanguage(Enum):
    """The languages of conditions that are evaluated here."""

    CEL = "CEL"  # once, over the whole value
    CEL_FIELD = "CEL_FIELD"  # for each field


@dataclass(frozen=True, slots=True)
class SchemaCondition:
    """A condition on written records. `language`: a ConditionLanguage, or another one, which is not evaluated here.

    `tags`: those of the fields that a CEL_FIELD condition is about; empty: all fields. `tags_by_pattern`: tags that
    fields have by the schema's metadata.
    """

    name: str
    language: str
    text: str
    tags: frozenset[str] = frozenset()
    tags_by_pattern: TagsByPattern = ()

    @property
    def expression(self) -> str:
        """Return the condition as one expression; with a guard before a semicolon, it holds if the guard is false."""
        guard, semicolon, condition = self.text.partition(";")
        if not semicolon:
            return self.text
        return f"({guard}\n) ? ({condition}\n) : true" if guard.strip() else condition

    @property
    def is_about_fields(self) -> bool:
        """Whether it is evaluated for each field."""
        return self.language == ConditionLanguage.CEL_FIELD.value


def conditions_in(rule_set: object, metadata: object = None) -> tuple[SchemaCondition, ...]:
    """Return the conditions of a registry's `ruleSet`. `metadata`: what the registry has beside it.

    Raises ValueError if it cannot be read.
    """
    if rule_set is None:
        return ()
    if not isinstance(rule_set, Mapping):
        raise ValueError("its ruleSet cannot be read")
    rules = rule_set.get("domainRules") or ()
    if not isinstance(rules, Sequence) or not all(isinstance(rule, Mapping) for rule in rules):
        raise ValueError("the domainRules of its ruleSet cannot be read")
    if len(rules) > _MOST_RULES:
        raise ValueError(f"its ruleSet has more than {_MOST_RULES} domainRules")
    if str(rule_set.get("enableAt") or "ALL") not in _EVERYWHERE:
        return ()
    return tuple(_applying(rules, metadata))


def _applying(rules: Sequence[Mapping[str, Any]], metadata: object) -> Iterator[SchemaCondition]:
    for rule in rules:
        is_condition = rule.get("kind") == "CONDITION" and rule.get("mode") in _MODES
        if is_condition and not rule.get("disabled") and str(rule.get("onFailure")).partition(",")[0] != "NONE":
            name = str(rule.get("name"))[:100]
            language = str(rule.get("type")).upper()[:100]
            text = str(rule.get("expr") or "")[:_MOST_CHARACTERS]
            if language == ConditionLanguage.CEL_FIELD.value:
                tags = _texts(rule.get("tags"), f"the tags of its rule {name}")
                yield SchemaCondition(name, language, text, tags, _tags_by_pattern(metadata))
            else:
                yield SchemaCondition(name, language, text)


def _tags_by_pattern(metadata: object) -> TagsByPattern:
    """Return the tags of a schema's metadata. Raises ValueError."""
    tags = (metadata.get("tags") or {}) if isinstance(metadata, Mapping) else {}
    if not isinstance(tags, Mapping) or len(tags) > _MOST_TAGS:
        raise ValueError("the tags of its metadata cannot be read")
    return tuple((str(name)[:_MOST_TAGS], _texts(of, "the tags of its metadata")) for name, of in tags.items())


def _texts(found: object, where: str) -> frozenset[str]:
    if found is None:
        return frozenset()
    if not isinstance(found, list | tuple) or len(found) > _MOST_TAGS:
        raise ValueError(f"{where} cannot be read")
    return frozenset(map(str, found))
