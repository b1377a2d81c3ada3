"""Defines the rules inside schemas.

These are `confluent:rules` in Avro and JSON Schema, and `rules` in Protobuf's `confluent.field_meta` and
`confluent.message_meta`. Confluent's serializers evaluate them if `validation.rules.execution` is set. In an object's
rule, `this` is the object. In a field's rule, `this` is the field's value; the rule is skipped if the value is null or
absent. `now` is the current time. The rules are evaluated either before or after all of the registry's `domainRules`,
depending on the client's configuration.
"""

import json
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from sluicegate.validation.rules.schemas.changed_fields import ChangedFields
from sluicegate.validation.rules.schemas.conditions import Clock, NotEvaluated
from sluicegate.validation.rules.schemas.content import Content, ExpressionOfSchema
from sluicegate.validation.rules.schemas.field_tags import FieldChange, fields_with_number
from sluicegate.validation.rules.schemas.rule_sets import WriteRules

RULES: Final = "confluent:rules"
_META, _RULES_OF_META = 1088, 4  # confluent/meta.proto
_NAME, _DOC, _EXPRESSION = 1, 2, 3
_MOST_NAME, _MOST_DOC = 100, 200
_MOST_LISTED = 10
_MOST_REASON = 180
_THIS: Final = "this"


class InlineRule(NamedTuple):
    """A rule inside a schema. `text` is its expression.

    It is empty if the rule has only SQL, which no client evaluates.
    """

    name: str
    text: str
    doc: str = ""


class RulePlace(NamedTuple):
    """An object or a field in a schema, with its rules.

    `key` identifies the place within the schema. `field` is the field's name, or None for an object. `is_uncertain` is
    whether a change of fields decides whether the rules apply.
    """

    key: Hashable
    rules: tuple[InlineRule, ...]
    field: str | None = None
    is_uncertain: bool = False


class PlacedRules:
    """A schema's rules by their places, except those whose result a change of fields may change.

    `names` contains the names of all rules, and `passed_over` the names of the omitted ones.
    """

    def __init__(self, places: Iterable[RulePlace], changed: ChangedFields | None = None) -> None:
        """Select the rules to evaluate.

        `changed` is None if no field changes, or if `places` state what is uncertain.
        """
        self.names: list[str] = []
        self.passed_over: list[str] = []
        self._by_key: dict[Hashable, tuple[InlineRule, ...]] = {}
        for place in places:
            kept = tuple(rule for rule in place.rules if not _may_differ(place, rule, changed))
            self.names += [rule.name for rule in place.rules]
            self.passed_over += [rule.name for rule in place.rules if rule not in kept]
            self._by_key[place.key] = kept

    @property
    def evaluated(self) -> list[InlineRule]:
        """Return the rules that are evaluated."""
        return [rule for rules in self._by_key.values() for rule in rules]

    def at(self, key: Hashable) -> tuple[InlineRule, ...]:
        """Return the rules that are evaluated at a place."""
        return self._by_key.get(key, ())


def _may_differ(place: RulePlace, rule: InlineRule, changed: ChangedFields | None) -> bool:
    """Return whether a rule's result may differ before and after the changes of fields."""
    if place.is_uncertain or not changed:
        return place.is_uncertain
    if place.field is None:
        return changed.are_read(rule.text, _THIS)
    return changed.are_read_from(place.field, rule.text, _THIS)


@runtime_checkable
class HasInlineRules(Protocol):
    """A schema that may contain rules."""

    def inline_rules(self, changes: Sequence[FieldChange], now: Clock) -> ExpressionOfSchema | None:
        """Return its rules for values in which `changes` have changed fields, or None if it contains no rules.

        Raises RuleUnusable.
        """

    def placed_rules(self, changes: Sequence[FieldChange] = ()) -> PlacedRules:
        """Return its rules by their places."""


@runtime_checkable
class HasUnusableRules(Protocol):
    """A schema's compiled rules, some of which may be unusable."""

    def unusable_rules(self) -> Sequence[tuple[str, str]]:
        """Return the names of unusable rules, each with the reason as a phrase that follows the name."""


def inline_rules_in(schema: Any) -> tuple[InlineRule, ...]:
    """Return the rules in an Avro record or field, or in a JSON Schema."""
    found = schema.get(RULES) if isinstance(schema, dict) else None
    rules = (each for each in found if isinstance(each, dict)) if isinstance(found, list) else ()
    return tuple(_rule(each.get("name"), each.get("expr"), each.get("doc")) for each in rules)


def inline_rules_of_text(text: bytes) -> tuple[InlineRule, ...]:
    """Return all rules in the source of an Avro or JSON Schema, which need not be usable."""
    try:
        waiting = [json.loads(text)]
    except (ValueError, RecursionError):
        return ()
    found: list[InlineRule] = []
    while waiting:
        part = waiting.pop()
        found += inline_rules_in(part)
        waiting += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return tuple(found)


def protobuf_inline_rules(descriptor: Any) -> tuple[InlineRule, ...]:
    """Return the rules of a message or a field, from its descriptor."""
    options = descriptor.GetOptions().SerializeToString()
    rules = (rule for meta in fields_with_number(options, _META) for rule in fields_with_number(meta, _RULES_OF_META))
    return tuple(_rule(*(_text(rule, number) for number in (_NAME, _EXPRESSION, _DOC))) for rule in rules)


def _text(message: bytes, number: int) -> str:
    return "".join(each.decode(errors="replace") for each in fields_with_number(message, number))


def _rule(name: Any, expression: Any, doc: Any) -> InlineRule:
    text = expression if isinstance(expression, str) else ""
    return InlineRule(str(name or "unnamed")[:_MOST_NAME], text, str(doc or "")[:_MOST_DOC])


def compiled_inline_rules(content: Content, changes: Sequence[FieldChange], now: Clock) -> ExpressionOfSchema:
    """Return the rules inside a schema. Raises RuleUnusable."""
    found = content.inline_rules(changes, now) if isinstance(content, HasInlineRules) else None
    return NotEvaluated() if found is None else found


def rules_that_are_not_enforced(content: Content, rules: WriteRules, are_enforced: bool) -> Iterator[str]:
    """Yield a sentence about the rules inside a schema that do not apply.

    `are_enforced` is whether the configuration enforces them.
    """
    if not isinstance(content, HasInlineRules):
        return
    if not are_enforced:
        yield from _about(content.placed_rules().names, "no rule for it sets inline_rules: true")
    elif rules.rewrites:
        why = f"its rule {rules.rewrites[0]} changes whole values before they are written"
        yield from _about(content.placed_rules().names, why)
    elif rules.changes:
        changing = _listed([change.name for change in rules.changes])
        why = f"they may read fields that its rules ({changing}) change before values are written"
        yield from _about(content.placed_rules(rules.changes).passed_over, why)


def unusable_rules_of(expression: object) -> str:
    """Return a description of the rules in a compiled schema that cannot be evaluated; an empty string if all can."""
    found = expression.unusable_rules() if isinstance(expression, HasUnusableRules) else ()
    if not found:
        return ""
    (name, why), *others = found
    names = [each for each, _ in others if each != name]
    return f"{name} {why[:_MOST_REASON]}{f'; also {_listed(names)}' if names else ''}"


def _about(names: Sequence[str], why: str) -> Iterator[str]:
    if names:
        yield f"the rules inside it ({_listed(names)}) are not enforced: {why}"


def _listed(names: Sequence[str]) -> str:
    different = list(dict.fromkeys(names))
    more = f" and {len(different) - _MOST_LISTED} more" if len(different) > _MOST_LISTED else ""
    return f"{', '.join(different[:_MOST_LISTED])}{more}"
