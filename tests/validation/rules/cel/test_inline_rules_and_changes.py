"""Rules inside schemas apply to records that a registry's rule changes before they are written.

Confluent's serializers evaluate the rules before or after the change, as each is configured, and write the changed
value. The proxy therefore rejects a record only if both orders reject it.
"""

import json
import os
import random
from typing import Any

import pytest

from sluicegate.validation.rules.schemas.changed_fields import ChangeableField, ChangedFields
from sluicegate.validation.rules.schemas.field_tags import FieldChange
from tests.validation.rules.records import record

pytest.importorskip("celpy", reason="cel-python is not installed: pip install 'confluent-kafka[rules]'")

from confluent_kafka.schema_registry import Rule, RuleKind, RuleMode

from tests.validation.rules.cel.schema_with_rules import SchemaWithRules
from tests.validation.rules.cel.test_field_conditions import DOCUMENTS

SEEDS = range(100 if "SLUICEGATE_THOROUGH" in os.environ else 10)
ORDERS = ("BEFORE_DOMAIN_RULES", "AFTER_DOMAIN_RULES")
EXPRESSIONS = [
    "this.count > 0",
    "this.id == 'o-1' && this.count == 7",
    "this.mail != ''",
    "has(this.mail) && this.paid",
    "this.buyer.age > 0",
    "this.buyer.name != 'Ann'",
    "this.buyer == this.buyer",
    "this.labels.all(each, each == 'eu')",
    "this.others.all(each, each.age > 0)",
    "size(this.others) > 0",
    "size(this) > 2",
    "size(this) < 2",
    "this != 'Ann'",
    "this == 'Ann-x'",
    "this['name'] == 'Ann'",
    "this.name == 'Ann'",
    "this.age > 18",
    "this > 0",
    "this.exists(each, each.name == 'Bob')",
    "now > timestamp('2020-01-01T00:00:00Z')",
    "false",
]
TRANSFORM = Rule(
    "t",
    "",
    RuleKind.TRANSFORM,
    RuleMode.WRITE,
    "CEL_FIELD",
    ["PII"],
    None,
    "typeName == 'STRING' ; value + '-x'",
    "NONE",
    "ERROR",
    False,
)


def count_rejections_in_orders(language: str, seed: int) -> tuple[int, int, list[str]]:
    """Return the number of values rejected in at least one order, the number rejected by the proxy, and the values that
    only the proxy rejects."""
    made = random.Random(f"changes {language} {seed}")
    rules = {made.randrange(1000): [{"name": "r", "expr": made.choice(EXPRESSIONS)}]}
    case = SchemaWithRules(language, rules, [TRANSFORM])
    rule = case.rule()
    document, changes = DOCUMENTS[language]
    in_one = here = 0
    ours_alone = []
    for change in changes:
        (data, before), (_, after) = (case.written(document | change, order) for order in ORDERS)
        words = rule.fault(record(b"\0\0\0\0\1" + data[5:]))
        in_one += bool(before or after)
        here += words is not None
        if words is not None and not (before and after):
            ours_alone.append(f"{rules} {change}: {words}; before: {before}; after: {after}")
    return in_one, here, ours_alone


@pytest.mark.parametrize("language", ["AVRO", "JSON", "PROTOBUF"])
def test_a_record_is_rejected_by_rules_before_and_after_fields_change(language: str) -> None:
    found = [count_rejections_in_orders(language, seed) for seed in SEEDS]

    assert [each for *_, ours_alone in found for each in ours_alone] == []
    assert 0 < sum(here for _, here, _ in found) < sum(in_one for in_one, *_ in found)


PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "mail": {"type": "string", "confluent:tags": ["PII"]},
        "age": {"type": "integer", "confluent:rules": [{"name": "adult", "expr": "this >= 18"}]},
    },
    "confluent:rules": [
        {"name": "old", "expr": "this.age < 150"},
        {"name": "reachable", "expr": "this.mail != 'a@b-x'"},
        {"name": "small", "expr": "size(this) < 1"},
    ],
}


@pytest.mark.parametrize(
    ("document", "rejected"),
    [
        ({"mail": "a@b", "age": 20}, None),
        ({"mail": "a@b", "age": 17}, "adult"),
        ({"mail": "a@b", "age": 200}, "old"),
    ],
)
def test_rules_about_unchanged_fields_are_evaluated(document: dict[str, Any], rejected: str | None) -> None:
    case = SchemaWithRules("JSON", {}, [TRANSFORM], json.dumps(PERSON))
    data, by_client = case.written(document, "BEFORE_DOMAIN_RULES")

    words = case.rule().fault(record(data))
    assert json.loads(data[5:])["mail"] == "a@b-x"
    assert rejected is None or f": {rejected}:" in by_client
    assert (words is None) == (rejected is None)
    assert rejected is None or f"the rule {rejected} inside" in str(words)


@pytest.mark.parametrize("keyword", ["oneOf", "anyOf"])
def test_skips_inline_rule_below_alternatives_that_a_field_change_may_decide(keyword: str) -> None:
    """The first schema, without rules, describes the person before the change, the second one the person after it."""

    def person_schema(pattern: str, rules: list[dict[str, str]]) -> dict[str, Any]:
        mail = {"type": "string", "pattern": pattern, "confluent:tags": ["PII"]}
        properties = {"mail": mail, "age": {"type": "integer", "confluent:rules": rules}}
        return {"type": "object", "properties": properties, "required": ["mail"]}

    branches = [person_schema("b$", []), person_schema("-x$", [{"name": "adult", "expr": "this >= 18"}])]
    schema = {"type": "object", "properties": {"buyer": {keyword: branches}}}
    case = SchemaWithRules("JSON", {}, [TRANSFORM], json.dumps(schema))
    before, after = (case.written({"buyer": {"mail": "a@b", "age": 17}}, order) for order in ORDERS)

    assert json.loads(before[0][5:])["buyer"]["mail"].startswith("a@b-x")
    assert (before[1], ": adult:" in after[1]) == ("", True)
    assert case.rule().fault(record(before[0])) is None


def test_evaluates_no_inline_rule_if_the_whole_value_is_changed() -> None:
    whole = Rule("w", "", RuleKind.TRANSFORM, RuleMode.WRITE, "JSONATA", [], None, "$", "NONE", "ERROR", False)
    case = SchemaWithRules("JSON", {}, [whole], json.dumps(PERSON))

    assert case.rule().fault(record(b'\0\0\0\0\1{"age": 17}')) is None


@pytest.mark.parametrize(
    ("expression", "reads"),
    [
        ("this.age > 1", False),
        ("this['age'] > 1 && has(this.size)", False),
        ("this.buyer.age > 1", False),
        ("this.mail != ''", True),
        ("this['mail'] != ''", True),
        ("this.buyer.mail != ''", True),
        ("this['ma' + 'il'] != ''", True),
        ("this['m\\u0061il'] != ''", True),
        ("this.buyer == null", True),
        ("this.buyers.all(each, each != null)", True),
        ("size(this) > 1", True),
        ("this.map(each, each) == []", True),
        ("[this][0] == 1", True),
        ("this['e-mail'] == ''", True),
        ("thisage > 1", False),
    ],
)
def test_detects_expression_that_may_read_a_changed_field(expression: str, reads: bool) -> None:
    def changeable_field(name: str, *tags: str, holds_fields: bool = False) -> ChangeableField:
        return ChangeableField(f"$.{name}", name, frozenset(tags), holds_fields)

    people = [changeable_field(name, holds_fields=True) for name in ("buyer", "buyers")]
    fields = [
        changeable_field("age"),
        changeable_field("size"),
        changeable_field("mail", "PII"),
        changeable_field("e-mail", "PII"),
        *people,
    ]
    changed = ChangedFields([FieldChange("t", frozenset({"PII"}))], fields)

    assert changed.are_read(expression, "this") is reads
    assert not ChangedFields([], fields).are_read(expression, "this")
