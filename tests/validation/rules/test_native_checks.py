"""A rule's native check accepts no record that the rule rejects, for every class with `ordinary()`."""

import ast
import json
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest
from fastavro.utils import generate_many

from sluicegate.protocol.records.scan import is_compiled
from sluicegate.proxy.rules_process.messages import EvaluatorKind, Specification
from sluicegate.proxy.rules_process.rule_limits import RuleLimits
from sluicegate.proxy.rules_process.rules_process import RulesProcess
from sluicegate.proxy.rules_process.stoppable import StoppableContent
from sluicegate.proxy.scheduling.wait_budget import WaitBudget
from sluicegate.validation.rules.avro.schema import avro_content
from sluicegate.validation.rules.built_in import MostRecords, Required, Size, Utf8
from sluicegate.validation.rules.content_rules import CONTENT_RULES
from sluicegate.validation.rules.json.schema import json_schema_content
from sluicegate.validation.rules.json.syntax import JsonSyntax
from sluicegate.validation.rules.native.questions import BytesQuestion, OrdinaryQuestions, native_check_about
from sluicegate.validation.rules.rule import Part, RuledRecord, Side
from sluicegate.validation.rules.rule_check import CheckedRule, check_rule
from sluicegate.validation.rules.schemas.schema_file import Envelope, FollowsSchema
from tests.oracle.kafka_java import ROOT
from tests.validation.rules.inline_rule import InlineRule
from tests.validation.rules.json.random_json import RandomJson
from tests.validation.rules.test_content_rules import example_keys, rules_of

pytestmark = pytest.mark.skipif(not is_compiled(), reason="there are no native checks: nothing was compiled")

_MOST_SCHEMAS = 8
_ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "customer": {"type": "string", "minLength": 1, "maxLength": 5},
        "amount": {"type": "number", "minimum": 0, "exclusiveMaximum": 1000.5},
        "state": {"enum": ["new", "paid", "naïve"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3, "minItems": 1},
        "note": {"type": ["string", "null"]},
        "parent": {"$ref": "#/$defs/order"},
    },
    "$defs": {"order": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}},
    "required": ["id"],
    "additionalProperties": False,
}
_ORDERS = (
    b'{"id":1}',
    b'{"id":1,"customer":"abcde","amount":1000.4,"state":"new"}',
    '{"id":7,"state":"naïve","tags":["a","b","c"],"note":null,"parent":{"id":2}}'.encode(),
    b'{"id":1.0,"amount":1e2}',
)
_AVRO: Sequence[Any] = (
    "long",
    "string",
    "bytes",
    ["null", "int", "boolean"],
    {"type": "fixed", "name": "F", "size": 5},
    {"type": "enum", "name": "E", "symbols": ["A", "B"]},
    {"type": "array", "items": "double"},
    {"type": "map", "values": "float"},
    {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "id", "type": "int"},
            {"name": "name", "type": "string"},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "before", "type": ["null", "R"]},
        ],
    },
)


def _datums(schema: Any) -> list[bytes]:
    found = []
    parsed = fastavro.parse_schema(schema)
    for value in generate_many(parsed, 8):
        buffer = BytesIO()
        fastavro.schemaless_writer(buffer, parsed, value)
        found.append(buffer.getvalue())
    return found


def _of_json_schemas() -> list[tuple[CheckedRule, Sequence[bytes]]]:
    made = RandomJson(1)
    schemas = [_ORDER, *(made.schema() for _ in range(100))]
    contents = [json_schema_content(json.dumps(schema)) for schema in schemas]
    texts = [text for text in (made.text() for _ in range(40)) if len(text) < 500][:4]
    rules = [FollowsSchema(Side.VALUE, content) for content in contents]
    native = [rule for rule in rules if rule.ordinary() is not None]
    assert native[0] is rules[0], "the schema of orders has no native check"
    return [(rule, [*_ORDERS, *texts]) for rule in native[:_MOST_SCHEMAS]]


def _of_avro() -> list[tuple[CheckedRule, Sequence[bytes]]]:
    contents = [(avro_content(json.dumps(schema)), _datums(schema)) for schema in _AVRO]
    bare = [(FollowsSchema(Side.VALUE, content), datums) for content, datums in contents]
    content, datums = contents[-1]
    enveloped = [b"\0\0\0\0\x07" + datum for datum in datums]
    return [*bare, (FollowsSchema(Side.KEY, content, Envelope.CONFLUENT), enveloped)]


def _of_stoppable() -> list[tuple[CheckedRule, Sequence[bytes]]]:
    content = json_schema_content(json.dumps(_ORDER))
    process = RulesProcess(
        RuleLimits(1.0, 128 << 20), WaitBudget()
    )  # only a costly value starts the process, and there is none
    specification = Specification(EvaluatorKind.JSON, json.dumps(_ORDER).encode())
    return [(FollowsSchema(Side.VALUE, StoppableContent(specification, content, process)), _ORDERS)]


_TEXTS = ["naïve".encode(), "漢字😀".encode(), b"plain text", b"a" * 65]
CASES: Mapping[str, Callable[[], Sequence[tuple[CheckedRule, Sequence[bytes | None]]]]] = {
    "Required": lambda: [(Required(side), [b"", b"k", None]) for side in Side],
    "Size": lambda: [
        (Size(side, least, most), [b"a" * size for size in (least, most or least) if size])
        for side in Side
        for least, most in ((0, 0), (0, 1), (2, 9), (3, None), (5, 5), (100, 1000))
    ],
    "Utf8": lambda: [(Utf8(side), _TEXTS) for side in Side],
    "MostRecords": lambda: [(MostRecords(most), [b"k", None]) for most in (1, 2, 30, 1000)],
    "JsonSyntax": lambda: [(JsonSyntax(side, max_depth=depth), _ORDERS) for side in Side for depth in (1, 2, 32, 100)],
    "JsonSchemaContent": _of_json_schemas,
    "AvroContent": _of_avro,
    "FollowsSchema": _of_stoppable,
    "StoppableContent": _of_stoppable,
}
"""Rules and examples by the class with `ordinary()`: every option that changes its check, and examples at limits."""
_PROTOCOLS = {"HasNativeCheck", "HasNativeContentCheck", "TopicPolicy"}


def _classes_with_native_checks() -> set[str]:
    return {
        node.name
        for package in ("validation", "proxy")
        for path in sorted(Path(ROOT, package).rglob("*.py"))
        if "def ordinary(" in (text := path.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
        and any(isinstance(each, ast.FunctionDef) and each.name == "ordinary" for each in node.body)
    }


@pytest.mark.parametrize("name", sorted(_classes_with_native_checks() - _PROTOCOLS))
def test_native_checks_accept_no_record_that_their_rule_rejects(name: str) -> None:
    assert name in CASES, (
        f"{name} has ordinary(): add rules with it to CASES in this file, with examples at the limits of what they "
        f"accept"
    )
    for rule, examples in CASES[name]():
        accepted = check_rule(rule, examples)
        assert accepted, f"native code accepts no record of {rule}: add examples that it accepts"


@pytest.mark.parametrize("name", CONTENT_RULES)
def test_every_registered_rule_kind_passes_check_rule(name: str) -> None:
    for written in example_keys(name):
        for rule in rules_of(name, written):
            check_rule(rule, _ORDERS)


class AcceptsMore(InlineRule):
    """A rule whose native check forgets one of its conditions."""

    parts = Part.VALUE
    is_slow = False

    def __init__(self, question: BytesQuestion, is_good: Callable[[bytes], bool]) -> None:
        self._question = question
        self._is_good = is_good

    def ordinary(self) -> OrdinaryQuestions:
        return native_check_about(Side.VALUE, self._question)

    def fault(self, record: RuledRecord) -> str | None:
        return None if record.value is None or self._is_good(record.value) else "the value is bad"


@pytest.mark.parametrize(
    "rule",
    [
        AcceptsMore(BytesQuestion(most=10), lambda value: len(value) < 10),
        AcceptsMore(BytesQuestion(least=3), lambda value: len(value) > 3),
        AcceptsMore(BytesQuestion(is_text=True), lambda value: value.decode(errors="replace").isascii()),
        AcceptsMore(BytesQuestion(is_text=True), lambda value: b"\0" not in value),
        AcceptsMore(BytesQuestion(json_depth=33), lambda value: value.count(b"[") <= 32),
        AcceptsMore(BytesQuestion(json_depth=9), lambda value: value[:1] == b"{"),
        AcceptsMore(BytesQuestion(), lambda value: value[:1] != b"\xff"),
        AcceptsMore(BytesQuestion(json_depth=9), lambda value: len(json.loads(value)) > 0 if value == b"{}" else True),
    ],
)
def test_check_rule_detects_native_check_that_accepts_more_than_its_rule(rule: CheckedRule) -> None:
    with pytest.raises(AssertionError, match=r"AcceptsMore\.ordinary\(\) accepts a record that fault\(\) rejects"):
        check_rule(rule)


class RaisingRule(InlineRule):
    """A rule that fails for some bytes."""

    parts = Part.VALUE
    is_slow = False

    def __init__(self, result: Callable[[bytes], Any]) -> None:
        self._result = result

    def fault(self, record: RuledRecord) -> str | None:
        result: str | None = self._result(record.value or b"")
        return result


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (bytes.decode, "raised UnicodeDecodeError"),
        (lambda value: value[0] and None, "raised IndexError"),
        (lambda value: 7, "returned int, not a text or None"),
    ],
)
def test_check_rule_detects_custom_rule_that_fails_for_some_bytes(result: Callable[[bytes], Any], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_rule(RaisingRule(result))


def test_rule_gets_only_the_record_parts_that_it_declares() -> None:
    seen = set()

    class RecordingRule(InlineRule):
        parts = Part.KEY
        is_slow = False

        def fault(self, record: RuledRecord) -> str | None:
            seen.add((record.value, record.headers))
            return None

    assert check_rule(RecordingRule()) == 0
    assert seen == {(None, ())}
