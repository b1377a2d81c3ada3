"""The rules inside a schema decide like Confluent's own serializers on the same values."""

import json
import random
import re
from typing import Any

import pytest

from sluicegate.validation.rules.avro.schema import avro_content
from sluicegate.validation.rules.cel.fields import TrueOfFields
from sluicegate.validation.rules.cel.inline_rules import InlinePrograms, MeetsInlineRules
from sluicegate.validation.rules.cel.runtime import CompiledExpression, compiled, field_environment
from sluicegate.validation.rules.json.schema import json_schema_content
from sluicegate.validation.rules.rule import INLINE_STEPS, UNBOUNDED, Outage, SchemaError
from sluicegate.validation.rules.schemas.conditions import SchemaCondition
from sluicegate.validation.rules.schemas.content import ExpressionOfSchema
from sluicegate.validation.rules.schemas.inline_rules import InlineRule, compiled_inline_rules
from tests.validation.rules.records import record
from tests.validation.rules.steps import steps_of

pytest.importorskip("celpy", reason="cel-python is not installed: pip install 'confluent-kafka[rules]'")


from confluent_kafka.schema_registry.rules.cel.extra_func import EXTRA_FUNCS

from tests.validation.rules.cel.schema_with_rules import SchemaWithRules
from tests.validation.rules.cel.test_field_conditions import DOCUMENTS

EXPRESSIONS = [
    "true",
    "false",
    "size(this) > 0",
    "this > 0",
    "this * 2.0 >= 0.0",
    "this.name != ''",
    "has(this.name) && this.name.startsWith('A')",
    "this.id == 'o-1' && this.count == 7",
    "this.count > 0 ? '' : 'the count is too low'",
    "size(this) > 0 ? '' : 'it is empty'",
    "this.buyer.name != '' || this.count < 0",
    "this.labels.all(each, each != '')",
    "this.exists(each, each.name != '')",
    "this.age < 18",
    "this.missing > 0",
    "this == 'x' || this == 'y' || this == 'eu'",
    "now > timestamp('2020-01-01T00:00:00Z')",
    "now < timestamp('2020-01-01T00:00:00Z')",
    "this > timestamp('1999-01-01T00:00:00Z')",
    "1 + 1",
    "this >",
    "",
    "this",
    "!this",
    "this.paid == true",
    "this['id'] == 'o-1'",
    "string(this) == '7'",
    "this == 'Ann'",
    "this.matches('^[a-z@.]+$')",
]


_VIOLATION = re.compile(r"  - (\S+): (r\d):(.*)")
_CANNOT_BE_EVALUATED = ("Could not compile", "has no expression", "1 + 1 (caused by")


def _names(words: str, path: str, rule: str) -> bool:
    """Return whether our text names a rule and its place; it leaves out the keys of maps, which a record has."""
    path = re.sub(r'\["[^"]*"\]', "[…]", path.removeprefix("$").removeprefix("."))
    where = "the value" if path in ("", "<root>") else f"the field {path}"
    return words.startswith(f"{where} does not meet the rule {rule} ")


def verdict_differences(language: str, seed: int) -> tuple[int, list[str]]:
    """Return how many values were validated with one generated schema, and where the verdicts differ."""
    made = random.Random(f"{language} {seed}")
    rules = {
        made.randrange(1000): [
            {"name": f"r{n}", "expr": made.choice(EXPRESSIONS)} for n in range(made.choice((1, 1, 2)))
        ]
        for _ in range(made.choice((1, 1, 2, 4)))
    }
    case = SchemaWithRules(language, rules)
    rule = case.rule()
    document, changes = DOCUMENTS[language]
    found = []
    for change in changes:
        data, why = case.written(document | change)
        try:
            words = rule.fault(record(b"\0\0\0\0\1" + data[5:]))
        except SchemaError as error:  # it rejects by default
            assert why, f"{rules} {change}: written, but {error}"
            continue
        violations = [
            each for each in _VIOLATION.findall(why) if not any(text in each[2] for text in _CANNOT_BE_EVALUATED)
        ]
        if (words is None) != (why == "") or (violations and words and not _names(words, *violations[0][:2])):
            found.append(f"{rules} {change}: {why or 'written'}, but {words}")
    return len(changes), found


@pytest.mark.parametrize("language", ["AVRO", "JSON", "PROTOBUF"])
def test_inline_rule_verdicts_equal_those_of_confluents_serializer(language: str) -> None:
    found = [each for seed in range(8) for each in verdict_differences(language, seed)[1]]

    assert found == []


def _record(*rules: dict[str, str], kind: Any = "long") -> str:
    fields = [{"name": "n", "type": kind, "confluent:rules": list(rules)}]
    return json.dumps({"type": "record", "name": "R", "fields": fields})


def _fault(text: str, data: bytes, now: int = 0) -> str | None:
    return compiled_inline_rules(avro_content(text), (), lambda: now).fault(record(data))


def test_cel_now_in_an_inline_rule_is_the_current_time() -> None:
    text = _record({"name": "past", "expr": "timestamp(this) < now"})

    assert _fault(text, b"\x0a", now=6_000_000_000) is None
    assert "does not meet the rule past" in str(_fault(text, b"\x0a", now=5_000_000_000))


def test_violation_shows_the_rule_doc_instead_of_text_computed_by_the_rule() -> None:
    text = _record({"name": "low", "expr": "this < 5 ? '' : 'too high: ' + string(this)", "doc": "below five"})

    assert _fault(text, b"\x0e") == "the field n does not meet the rule low inside its schema: below five"


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({"name": "a", "sql": "n > 0"}, "has no expression"),
        ({"name": "b", "expr": "this >"}, "cannot be compiled: line 1"),
        ({"name": "c", "expr": "this.isEmail()"}, "cannot be compiled: .*isEmail"),
        ({"name": "d", "expr": "1 + 1"}, "cannot be compiled: the expression returns int"),
    ],
)
def test_uncompilable_inline_rule_is_reported_only_for_records_it_applies_to(rule: dict[str, str], why: str) -> None:
    """Confluent's client rejects a record that such a rule applies to, unless it knows the function, and no other."""
    fields = {"mail": {"confluent:rules": [rule]}, "n": {"confluent:rules": [{"name": "positive", "expr": "this > 0"}]}}
    case = SchemaWithRules("JSON", {}, text=json.dumps({"type": "object", "properties": fields}))
    named = f"schema 1 of registry main cannot be used: the rule {rule['name']} inside it, about the field mail, {why}"
    rejected = "does not meet the rule positive"

    for document, fault in (({"n": 1}, None), ({"n": 0}, rejected), ({"mail": "a", "n": 0}, rejected)):
        data, by_client = case.written(document)
        words = case.rule().fault(record(data))
        assert (fault is None) == (by_client == "") == (words is None)
        assert fault is None or fault in str(words)
    data, by_client = case.written({"mail": "a", "n": 1})
    assert by_client  # the text is not an address
    with pytest.raises(SchemaError, match=named):
        case.rule().fault(record(data))


ADDED_FUNCTIONS = [name for name in EXTRA_FUNCS if name[0] != "_" and name not in ("double", "string", "timestamp")]
"""The functions that Confluent's client adds to the core language. It only adds arguments to the three others."""


@pytest.mark.parametrize("name", ADDED_FUNCTIONS)
def test_unavailable_function_of_confluents_client_is_reported(name: str) -> None:
    expressions = (
        [f"{name}(this, this) == true"] if "." in name else [f"{name}(this) == true", f"this.{name}() == true"]
    )
    for expression in expressions:
        with pytest.raises(SchemaError, match=f"{re.escape(name)} is not available"):
            _fault(_record({"name": "r", "expr": expression}), b"\2")


@pytest.mark.parametrize(
    "expression", ["timestamp(this, 3) < now", "timestamp.of(this) < now", "value > 0", "message.a"]
)
def test_undefined_name_in_an_inline_rule_is_explained(expression: str) -> None:
    explained = "exists, but with other arguments|timestamp.of is not available|there are now, this$"
    with pytest.raises(SchemaError, match=explained):
        _fault(_record({"name": "r", "expr": expression}), b"\2")


@pytest.mark.parametrize("other", ["null", "''", "0"])
def test_inline_rule_can_compare_a_list_with_any_type(other: str) -> None:
    """Confluent's client for Python cannot compare these. By CEL's specification the values differ."""
    text = _record({"name": "r", "expr": f"this != {other}"}, kind={"type": "array", "items": "int"})

    assert _fault(text, b"\0") is None


def test_inline_rule_steps_grow_with_ruled_values_and_the_data_read() -> None:
    numbers = {"type": "array", "items": {"type": "object", "confluent:rules": [{"name": "r", "expr": "this.n > 0"}]}}
    each = compiled_inline_rules(json_schema_content(json.dumps(numbers)), (), lambda: 0)
    loop = {"type": "object", "confluent:rules": [{"name": "r", "expr": "this.n.all(x, this.n.exists(y, y == x))"}]}
    quadratic = compiled_inline_rules(json_schema_content(json.dumps(loop)), (), lambda: 0)

    few, many = (json.dumps([{"n": 1}] * count).encode() for count in (2, 20))
    assert 4 * steps_of(each.fault, record(few)) < steps_of(each.fault, record(many)) < INLINE_STEPS
    assert steps_of(each.fault, record(json.dumps([{"n": 1}] * 2_000).encode())) > INLINE_STEPS
    assert steps_of(quadratic.fault, record(json.dumps({"n": list(range(2_000))}).encode())) > INLINE_STEPS


class _NoMemory:
    """A schema whose values take all memory when they are read."""

    pool = None

    def compiled(self, expression: str) -> CompiledExpression:
        return compiled(expression, field_environment())

    def estimate_reading(self, _data: bytes) -> tuple[int, int, int]:
        return 0, 0, UNBOUNDED

    def visit(self, _data: bytes, _visit: object) -> None:
        raise MemoryError


@pytest.mark.parametrize(
    "expression",
    [
        MeetsInlineRules(InlinePrograms([InlineRule("r", "true")]), _NoMemory(), lambda: 0),
        TrueOfFields(SchemaCondition("c", "CEL_FIELD", "true"), _NoMemory(), lambda: 0),
    ],
    ids=["inline rules", "conditions on fields"],
)
def test_record_that_exhausts_memory_is_too_costly_in_the_rules_process(expression: ExpressionOfSchema) -> None:
    """The rules process has its own limit; an outage there would make the producer send the record again for ever."""
    with pytest.raises(Outage) as raised:
        expression.fault(record(b"x"))

    assert isinstance(raised.value.__cause__, MemoryError)
