"""The rules inside a schema give what Confluent's own serializers decide about the same values."""

import json
import random
import re
from base64 import b64encode
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from sluicegate.proxy.registry.http import JsonResponse
from sluicegate.proxy.registry.inline_rules import inline_rules_of
from sluicegate.proxy.registry.schema_registry import SchemaRegistry
from sluicegate.proxy.rules_process.protoc import descriptor_set_of
from sluicegate.validation.rules.avro.schema import avro_content
from sluicegate.validation.rules.cel.fields import TrueOfFields
from sluicegate.validation.rules.cel.inline_rules import InlinePrograms, MeetsInlineRules
from sluicegate.validation.rules.cel.runtime import CompiledExpression, compiled, field_environment
from sluicegate.validation.rules.json.schema import json_schema_content
from sluicegate.validation.rules.rule import INLINE_STEPS, UNBOUNDED, Outage, SchemaError, Side
from sluicegate.validation.rules.schemas.conditions import SchemaCondition
from sluicegate.validation.rules.schemas.content import ExpressionOfSchema
from sluicegate.validation.rules.schemas.inline_rules import InlineRule, UnchangedValues, compiled_inline_rules
from sluicegate.validation.rules.schemas.registered_schema import HasRegisteredSchema, SubjectName
from sluicegate.validation.rules.schemas.schema_expression import TrueOfSchema
from tests.registry.test_schema_registry import ScriptedRegistry
from tests.validation.rules.records import record
from tests.validation.rules.steps import steps_of

pytest.importorskip("celpy", reason="cel-python is not installed: pip install 'confluent-kafka[rules]'")

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.confluent import meta_pb2
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import SerializationError
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass

from tests.validation.rules.cel.test_field_conditions import AVRO, CONTEXT, DOCUMENTS, JSON, PROTOBUF

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
    "this",
    "!this",
    "this.paid == true",
    "this['id'] == 'o-1'",
    "string(this) == '7'",
    "this == 'Ann'",
    "this.matches('^[a-z@.]+$')",
]


class _Case:
    """One schema with rules in it: Confluent's serializer with and without them, and our rule."""

    def __init__(self, language: str, rules: dict[int, list[dict[str, str]]]) -> None:
        self.language = language
        if language == "PROTOBUF":
            files = FileDescriptorSet.FromString(descriptor_set_of("file.proto", PROTOBUF, {}))
            places = list(_protobuf_places(files.file[-1]))
            for at, given in rules.items():
                options = places[at % len(places)].options
                is_message = options.DESCRIPTOR.name == "MessageOptions"
                meta = options.Extensions[getattr(meta_pb2, "message_meta" if is_message else "field_meta")]
                for rule in given:
                    meta.rules.add(**rule)
            pool = DescriptorPool()
            for file in files.file:
                pool.Add(file)
            self.new = GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
            self.text = b64encode(files.file[-1].SerializeToString()).decode()
        else:
            schema = deepcopy(AVRO if language == "AVRO" else JSON)
            places = list(_avro_places(schema) if language == "AVRO" else _json_places(schema))
            for at, given in rules.items():
                places[at % len(places)]["confluent:rules"] = given
            self.text = json.dumps(schema)
        self._plain, self._ruled = self._serializer("DISABLED"), self._serializer("AFTER_DOMAIN_RULES")

    def _serializer(self, execution: str) -> Any:
        client = SchemaRegistryClient.new_client({"url": "mock://"})
        client.register_schema("orders-value", Schema(self.text, self.language, []))
        conf = {"auto.register.schemas": False, "use.latest.version": True, "validation.rules.execution": execution}
        if self.language == "AVRO":
            return AvroSerializer(client, self.text, conf=conf)
        if self.language == "JSON":
            return JSONSerializer(self.text, client, conf=conf)
        return ProtobufSerializer(self.new, client, conf | {"use.deprecated.format": False})

    def written(self, document: dict[str, Any]) -> tuple[bytes, str]:
        """Return what the serializer writes without the rules, and why it does not with them; empty if it does."""
        value = ParseDict(document, self.new()) if self.language == "PROTOBUF" else document
        data = bytes(self._plain(deepcopy(value), CONTEXT))
        try:
            self._ruled(deepcopy(value), CONTEXT)
        except (SerializationError, TypeError) as error:  # its runtime raises TypeError for `exists` over a number
            return data, str(error)
        return data, ""

    def rule(self, **more: Any) -> TrueOfSchema:
        http = ScriptedRegistry()
        http.answers["/schemas/ids/1"] = JsonResponse(
            200, {"schemaType": self.language, "schema": self.text, "references": [], **more}
        )
        schemas = HasRegisteredSchema(Side.VALUE, SchemaRegistry("main", http, 60, 30), None, SubjectName.ANY)
        return TrueOfSchema("", UnchangedValues(schemas), inline_rules_of)


def _avro_places(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict) and schema["type"] == "record":
        yield schema
        for field in schema["fields"]:
            yield field
            yield from _avro_places(field["type"])
    elif isinstance(schema, dict):
        for each in ("items", "values"):
            yield from _avro_places(schema.get(each))
    elif isinstance(schema, list):
        for branch in schema:
            yield from _avro_places(branch)


def _json_places(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if "type" in schema or "$ref" in schema or "allOf" in schema or "oneOf" in schema or "anyOf" in schema:
            yield schema
        for each in schema.values():
            yield from _json_places(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _json_places(each)


def _protobuf_places(part: Any) -> Iterator[Any]:
    for message in part.nested_type if hasattr(part, "nested_type") else part.message_type:
        if not message.options.map_entry:
            yield message
            yield from message.field
            yield from _protobuf_places(message)


_VIOLATION = re.compile(r"  - (\S+): (r\d):")


def _names(words: str, path: str, rule: str) -> bool:
    """Return whether our text names a rule and its place; it leaves out the keys of maps, which a record has."""
    path = re.sub(r'\["[^"]*"\]', "[…]", path.removeprefix("$").removeprefix("."))
    where = "the value" if path in ("", "<root>") else f"the field {path}"
    return words.startswith(f"{where} does not meet the rule {rule} ")


def differences(language: str, seed: int) -> tuple[int, list[str]]:
    """Return how many values were validated with one generated schema, and where the verdicts differ."""
    made = random.Random(f"{language} {seed}")
    rules = {
        made.randrange(1000): [
            {"name": f"r{n}", "expr": made.choice(EXPRESSIONS)} for n in range(made.choice((1, 1, 2)))
        ]
        for _ in range(made.choice((1, 1, 2, 4)))
    }
    case = _Case(language, rules)
    rule = case.rule()
    document, changes = DOCUMENTS[language]
    found = []
    for change in changes:
        value = {name: each for name, each in (document | change).items() if each is not None or language != "PROTOBUF"}
        data, why = case.written(value)
        try:
            words = rule.fault(record(b"\0\0\0\0\1" + data[5:]))
        except SchemaError as error:
            assert "the expression gives int" in str(error)
            continue  # it rejects all records; the client only those that have the field
        first = _VIOLATION.search(why)
        if (words is None) != (why == "") or (first and words and not _names(words, first[1], first[2])):
            found.append(f"{rules} {change}: {why or 'written'}, but {words}")
    return len(changes), found


@pytest.mark.parametrize("language", ["AVRO", "JSON", "PROTOBUF"])
def test_verdicts_are_those_of_confluents_serializer(language: str) -> None:
    found = [each for seed in range(8) for each in differences(language, seed)[1]]

    assert found == []


def _record(*rules: dict[str, str], kind: Any = "long") -> str:
    fields = [{"name": "n", "type": kind, "confluent:rules": list(rules)}]
    return json.dumps({"type": "record", "name": "R", "fields": fields})


def _fault(text: str, data: bytes, now: int = 0) -> str | None:
    return compiled_inline_rules(avro_content(text), lambda: now).fault(record(data))


def test_now_is_the_time_of_the_clock() -> None:
    text = _record({"name": "past", "expr": "timestamp(this) < now"})

    assert _fault(text, b"\x0a", now=6_000_000_000) is None
    assert "does not meet the rule past" in str(_fault(text, b"\x0a", now=5_000_000_000))


def test_a_text_that_a_rule_gives_is_not_quoted_since_it_may_quote_the_record() -> None:
    text = _record({"name": "low", "expr": "this < 5 ? '' : 'too high: ' + string(this)", "doc": "below five"})

    assert _fault(text, b"\x0e") == "the field n does not meet the rule low inside its schema: below five"


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({"name": "a", "sql": "n > 0"}, "the rule a inside it has no expression"),
        ({"name": "b", "expr": "this >"}, "the rule b inside it cannot be compiled: line 1"),
        ({"name": "c", "expr": "this.isEmail()"}, "the rule c inside it cannot be compiled: .*isEmail"),
        ({"name": "d", "expr": "1 + 1"}, "the rule d inside it cannot be compiled: the expression gives int"),
    ],
)
def test_a_rule_that_cannot_be_compiled_is_no_outage(rule: dict[str, str], why: str) -> None:
    case = _Case("JSON", {0: [rule]})

    with pytest.raises(SchemaError, match=f"schema 1 of registry main cannot be used: .*{why}"):
        case.rule().fault(record(b"\0\0\0\0\1{}"))


@pytest.mark.parametrize("other", ["null", "''", "0"])
def test_a_list_can_be_compared_with_anything(other: str) -> None:
    """Confluent's client for Python cannot do that; by the specification of CEL they differ."""
    text = _record({"name": "r", "expr": f"this != {other}"}, kind={"type": "array", "items": "int"})

    assert _fault(text, b"\0") is None


def test_values_that_a_rule_of_the_registry_changes_are_passed_over() -> None:
    case = _Case("JSON", {0: [{"name": "r", "expr": "false"}]})
    encrypt = {"name": "e", "kind": "TRANSFORM", "type": "ENCRYPT", "mode": "WRITEREAD", "tags": ["PII"]}

    assert case.rule().fault(record(b"\0\0\0\0\1{}")) is not None
    assert case.rule(ruleSet={"domainRules": [encrypt]}).fault(record(b"\0\0\0\0\1{}")) is None
    assert case.rule(ruleSet={"domainRules": [encrypt | {"mode": "READ"}]}).fault(record(b"\0\0\0\0\1{}")) is not None


def test_steps_grow_with_the_values_that_have_rules_and_with_what_a_rule_reads() -> None:
    numbers = {"type": "array", "items": {"type": "object", "confluent:rules": [{"name": "r", "expr": "this.n > 0"}]}}
    each = compiled_inline_rules(json_schema_content(json.dumps(numbers)), lambda: 0)
    loop = {"type": "object", "confluent:rules": [{"name": "r", "expr": "this.n.all(x, this.n.exists(y, y == x))"}]}
    quadratic = compiled_inline_rules(json_schema_content(json.dumps(loop)), lambda: 0)

    few, many = (json.dumps([{"n": 1}] * count).encode() for count in (2, 20))
    assert 4 * steps_of(each.fault, record(few)) < steps_of(each.fault, record(many)) < INLINE_STEPS
    assert steps_of(each.fault, record(json.dumps([{"n": 1}] * 2_000).encode())) > INLINE_STEPS
    assert steps_of(quadratic.fault, record(json.dumps({"n": list(range(2_000))}).encode())) > INLINE_STEPS


class _NoMemory:
    """Values whose reading takes all memory."""

    pool = None

    def compiled(self, expression: str) -> CompiledExpression:
        return compiled(expression, field_environment())

    def extent(self, _data: bytes) -> tuple[int, int, int]:
        return 0, 0, UNBOUNDED

    def visit(self, _data: bytes, _visit: object) -> None:
        raise MemoryError


@pytest.mark.parametrize(
    "expression",
    [
        MeetsInlineRules(InlinePrograms([InlineRule("r", "true")]), _NoMemory(), lambda: 0),
        TrueOfFields(SchemaCondition("c", "CEL_FIELD", "true"), _NoMemory()),
    ],
    ids=["inline rules", "conditions on fields"],
)
def test_a_record_that_takes_all_memory_is_too_costly_in_the_rules_process(expression: ExpressionOfSchema) -> None:
    """The rules process has its own limit; an outage there would make the producer send the record again for ever."""
    with pytest.raises(Outage) as raised:
        expression.fault(record(b"x"))

    assert isinstance(raised.value.__cause__, MemoryError)
