"""The rules inside schemas: `confluent:rules` in Avro and JSON Schema, and `rules` of Protobuf's `confluent.field_meta`
and `confluent.message_meta`.

Confluent's serializers evaluate them if `validation.rules.execution` is set. A rule of an object has the object as
`this`, a rule of a field the field's value, unless that is null or absent; `now` is the time.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from sluicegate.validation.rules.rule import RuledRecord
from sluicegate.validation.rules.schemas.conditions import NotEvaluated
from sluicegate.validation.rules.schemas.content import Content, ExpressionOfSchema
from sluicegate.validation.rules.schemas.field_tags import fields_with_number
from sluicegate.validation.rules.schemas.registered_schema import HasRegisteredSchema
from sluicegate.validation.rules.schemas.rule_sets import WriteRules

RULES: Final = "confluent:rules"
_META, _RULES_OF_META = 1088, 4  # confluent/meta.proto
_NAME, _DOC, _EXPRESSION = 1, 2, 3
_MOST_NAME, _MOST_DOC = 100, 200
_MOST_LISTED = 10

Clock = Callable[[], int]
"""Returns the time in ns since 1970."""


class InlineRule(NamedTuple):
    """A rule inside a schema. `text`: its expression; empty if it has only SQL, which no client evaluates."""

    name: str
    text: str
    doc: str = ""


@runtime_checkable
class HasInlineRules(Protocol):
    """A schema that may have rules in it."""

    def inline_rules(self, now: Clock) -> ExpressionOfSchema | None:
        """Return its rules; None: it has none. Raises RuleUnusable."""

    def inline_rule_names(self) -> Sequence[str]:
        """Return the names of its rules."""


def inline_rules_in(schema: Any) -> tuple[InlineRule, ...]:
    """Return the rules of an Avro record or field, or of a JSON Schema."""
    found = schema.get(RULES) if isinstance(schema, dict) else None
    rules = (each for each in found if isinstance(each, dict)) if isinstance(found, list) else ()
    return tuple(_rule(each.get("name"), each.get("expr"), each.get("doc")) for each in rules)


def inline_rule_names_in(text: bytes) -> list[str]:
    """Return the names of all rules in the text of an Avro or JSON Schema, which need not be a usable one."""
    try:
        waiting = [json.loads(text)]
    except (ValueError, RecursionError):
        return []
    names = []
    while waiting:
        part = waiting.pop()
        names += [each.name for each in inline_rules_in(part)]
        waiting += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return names


def protobuf_inline_rules(descriptor: Any) -> tuple[InlineRule, ...]:
    """Return the rules of a message or a field by its descriptor."""
    options = descriptor.GetOptions().SerializeToString()
    rules = (rule for meta in fields_with_number(options, _META) for rule in fields_with_number(meta, _RULES_OF_META))
    return tuple(_rule(*(_text(rule, number) for number in (_NAME, _EXPRESSION, _DOC))) for rule in rules)


def _text(message: bytes, number: int) -> str:
    return "".join(each.decode(errors="replace") for each in fields_with_number(message, number))


def _rule(name: Any, expression: Any, doc: Any) -> InlineRule:
    text = expression if isinstance(expression, str) else ""
    return InlineRule(str(name or "unnamed")[:_MOST_NAME], text, str(doc or "")[:_MOST_DOC])


class UnchangedValues:
    """The schemas of records whose values no rule of the registry has changed (`SchemaOfRecord`): rules inside a schema
    are about values before such changes.
    """

    def __init__(self, schemas: HasRegisteredSchema) -> None:
        self._schemas = schemas

    def known_content(self, record: RuledRecord) -> tuple[Content, bytes] | None:
        found = self._schemas.known_schema(record)
        return None if found is None or found[0].rules.transforms else (found[0].content, found[1])

    def content(self, record: RuledRecord) -> tuple[Content, bytes, str] | None:
        found = self._schemas.schema(record)
        return None if found is None or found[0].rules.transforms else (found[0].content, *found[1:])


def compiled_inline_rules(content: Content, now: Clock) -> ExpressionOfSchema:
    """Return the rules inside a schema. Raises RuleUnusable."""
    found = content.inline_rules(now) if isinstance(content, HasInlineRules) else None
    return NotEvaluated() if found is None else found


def not_enforced(content: Content, rules: WriteRules, are_enforced: bool) -> Iterator[str]:
    """Yield a sentence about the rules inside a schema that do not apply. `are_enforced`: by the configuration."""
    names = tuple(dict.fromkeys(content.inline_rule_names())) if isinstance(content, HasInlineRules) else ()
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    which = f"the rules inside it ({', '.join(names[:_MOST_LISTED])}{more}) are not enforced"
    if names and not are_enforced:
        yield f"{which}: no rule for it has inline_rules: true"
    elif names and rules.transforms:
        yield f"{which}, because its rule {rules.transforms[0]} changes values before they are written"
