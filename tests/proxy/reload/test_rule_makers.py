"""Schemas in files are compiled; large schemas are compiled in the rules process, because a library may hold the
interpreter."""

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from socket import socket

import pytest

from sluicegate.config.content_keys import Schema
from sluicegate.config.limits import Limits
from sluicegate.config.registries import Registry
from sluicegate.proxy.registry import schema_rules
from sluicegate.proxy.reload.rule_makers import RuleMakers
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.rules_process.messages import Specification
from sluicegate.proxy.scheduling.wait_budget import WaitBudget
from sluicegate.validation.rules.cel.runtime import ExpressionUnusable
from sluicegate.validation.rules.rule import INLINE_STEPS, Side
from sluicegate.validation.rules.schemas.content import Content, SchemaUnusable
from tests.registry.stand_in import StandIn, http_response
from tests.validation.rules.records import record
from tests.validation.rules.steps import steps_of

LARGE = 300_000
NUMBERS = '{"type": "record", "name": "R", "fields": [{"name": "n", "type": {"type": "array", "items": "long"}}]}'
WITH_TEXT = '{"properties": {"s": {"type": "string"}}}'


@pytest.fixture
def rule_makers() -> Iterator[RuleMakers]:
    made = RuleMakers(WaitBudget(), Counters(), Limits())
    yield made
    made.close()


def json_schema_file(folder: Path, padding: int, kind: str = "object") -> Schema:
    file = folder / "schema.json"
    file.write_text(json.dumps({"type": kind, "description": "x" * padding}))
    return Schema(format="json", file=str(file))


def test_small_schema_is_compiled_in_calling_process(rule_makers: RuleMakers, tmp_path: Path) -> None:
    rule = rule_makers.for_registries({}).of_schema(json_schema_file(tmp_path, 100), Side.VALUE)

    assert not rule.is_slow
    assert rule_makers.pid is None


def test_a_large_schema_that_compiles_fast_is_compiled_in_both_processes(
    rule_makers: RuleMakers, tmp_path: Path
) -> None:
    rule = rule_makers.for_registries({}).of_schema(json_schema_file(tmp_path, LARGE), Side.VALUE)

    assert not rule.is_slow
    assert rule_makers.pid is not None


def test_a_large_schema_that_compiles_slowly_stays_in_the_rules_process(
    rule_makers: RuleMakers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_rules, "_CHEAP_SECONDS", -1)  # a coarse clock may measure 0 s

    rule = rule_makers.for_registries({}).of_schema(json_schema_file(tmp_path, LARGE), Side.VALUE)

    assert rule.is_slow


def json_schema_with_patterns(count: int, pattern: str) -> str:
    return json.dumps({"properties": {f"f{i}": {"type": "string", "pattern": f"{pattern}{i}"} for i in range(count)}})


@pytest.mark.parametrize(
    ("text", "is_compiled_here"),
    [
        (json_schema_with_patterns(4_000, "^[a-z]{2}"), False),
        (json_schema_with_patterns(1, r"^(\p{L}{100}){100}"), False),
        (json.dumps({"patternProperties": {rf"\p{{L}}{{40}}{i}": {} for i in range(20)}}), False),
        (json_schema_with_patterns(300, "^[a-z]{2}"), True),
        (json_schema_with_patterns(3, r"^\p{L}{2}"), True),
    ],
    ids=["many", "nested counts", "names of properties", "some", "short"],
)
def test_small_schema_with_costly_patterns_is_compiled_only_in_rules_process(
    rule_makers: RuleMakers, text: str, is_compiled_here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4,000 patterns hold the interpreter for 100 to 280 ms; a pattern too large for its library for 500 ms."""
    compiled: list[object] = []
    here = schema_rules._compiled

    def note_call(given: Specification) -> Content:
        compiled.append(given)
        return here(given)

    monkeypatch.setattr(schema_rules, "_compiled", note_call)
    monkeypatch.setattr(schema_rules, "_CHEAP_SECONDS", -1)  # a coarse clock may measure 0 s
    assert len(text) < 256 << 10

    with suppress(SchemaUnusable):  # an error with nested counts, as the rules process reports it
        rule_makers.for_registries({}).of_schema(Schema(format="json", text=text), Side.VALUE)

    assert bool(compiled) is is_compiled_here
    assert (rule_makers.pid is None) is is_compiled_here


def test_large_invalid_schema_is_rejected(rule_makers: RuleMakers, tmp_path: Path) -> None:
    with pytest.raises(SchemaUnusable):
        rule_makers.for_registries({}).of_schema(json_schema_file(tmp_path, LARGE, "nothing"), Side.VALUE)


@pytest.mark.parametrize(
    ("content", "reason"), [("{", "the schema is not JSON"), ("7", "a JSON Schema must be an object")]
)
def test_invalid_schema_error_names_schema_file(
    rule_makers: RuleMakers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.json").write_text(content)
    maker = rule_makers.for_registries({})

    with pytest.raises(SchemaUnusable, match=f"^{tmp_path}/own.json: {reason}"):
        maker.of_schema(Schema(format="json", file="own.json"), Side.VALUE)
    with pytest.raises(SchemaUnusable, match=f"^{reason}"):
        maker.of_schema(Schema(format="json", text=content), Side.VALUE)
    with pytest.raises(SchemaUnusable, match=f"^{tmp_path}/none.json cannot be read: No such file"):
        maker.of_schema(Schema(format="json", file="none.json"), Side.VALUE)


def test_missing_library_error_names_pip_extra_and_container_image(
    rule_makers: RuleMakers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)

    with pytest.raises(
        SchemaUnusable, match=r"pip install 'sluicegate\[rules\]', or use the image with -rules in its tag$"
    ):
        rule_makers.for_registries({}).of_schema(Schema(format="json", text="{}"), Side.VALUE)


def test_large_schema_is_rejected_without_outage_if_rules_process_is_closed(
    rule_makers: RuleMakers, tmp_path: Path
) -> None:
    rule_makers.close()

    with pytest.raises(SchemaUnusable, match="too costly to compile without the rules process"):
        rule_makers.for_registries({}).of_schema(json_schema_file(tmp_path, LARGE), Side.VALUE)


def test_costly_value_check_runs_in_rules_process(rule_makers: RuleMakers) -> None:
    maker = rule_makers.for_registries({})
    cheap, costly = (
        maker.of_content("json", Side.VALUE, {"duplicate_keys": keys, "max_depth": 9}) for keys in ("allow", "reject")
    )
    few, many = (record(b"[" + b"[]," * count + b'{"a":1,"a":1}]') for count in (10, 300_000))

    assert cheap.fault(many) is None
    assert "a duplicate key" in str(costly.fault(few))
    assert rule_makers.pid is None, "a few steps are validated here"
    assert "a duplicate key" in str(costly.fault(many))
    assert rule_makers.pid is not None


def test_an_expression_over_a_large_avro_value_runs_in_the_rules_process(
    rule_makers: RuleMakers, tmp_path: Path
) -> None:
    file = tmp_path / "numbers.avsc"
    file.write_text(NUMBERS)
    given = Schema(format="avro", file=str(file))
    rule = rule_makers.for_registries({}).of_schema_expression("value.n.size() == 64 && value.n.all(i, i == -1)", given)

    assert rule.fault(record(b"\x80\1" + b"\1" * 64 + b"\0")) is None
    assert rule_makers.pid is None
    assert rule.fault(record(b"\x80\x80\2" + b"\1" * 16_384 + b"\0")) == (
        "not true of the record: value.n.size() == 64 && value.n.all(i, i == -1)"
    )
    assert rule_makers.pid is not None


def test_rejects_expression_with_field_missing_from_schema_file(rule_makers: RuleMakers, tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    file.write_text('{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}')

    with pytest.raises(ExpressionUnusable, match="undefined field 'amount' not found in struct 'Order'"):
        rule_makers.for_registries({}).of_schema_expression("value.amount > 0", Schema(format="avro", file=str(file)))


@pytest.mark.parametrize(
    ("kind", "language", "text", "small", "large"),
    [
        ("CEL", "JSON", "{}", b'{"n": [1]}', b'{"n": [%s1]}' % (b"1," * 30_000)),
        ("CEL", "AVRO", NUMBERS, b"\2\2\0", b"\x80\x80\x08" + b"\1" * 65_536 + b"\0"),
        ("CEL_FIELD", "JSON", WITH_TEXT, b'{"s": "", "n": [1]}', b'{"s": "", "n": [%s1]}' % (b"1," * 30_000)),
    ],
)
def test_a_condition_on_a_large_value_runs_in_the_rules_process(
    rule_makers: RuleMakers, kind: str, language: str, text: str, small: bytes, large: bytes
) -> None:
    condition = {"name": "few", "kind": "CONDITION", "type": kind, "mode": "WRITE", "expr": "message.n.size() < 9"}
    body = {"schemaType": language, "schema": text, "ruleSet": {"domainRules": [condition]}}

    def respond(client: socket, _head: bytes) -> bool:
        client.sendall(http_response("200 OK", json.dumps(body).encode()))
        return True

    with StandIn(respond) as registry:
        given = Schema(registry="main", subject="any", conditions=True)
        rule = rule_makers.for_registries({"main": Registry(url=registry.url)}).of_conditions(given, Side.VALUE)

        assert rule.fault(record(b"\0\0\0\0\1" + small)) is None
        assert (
            steps_of(rule.fault, record(b"\0\0\0\0\1" + small))
            <= INLINE_STEPS
            < steps_of(rule.fault, record(b"\0\0\0\0\1" + large))
        )
        assert "does not meet the condition few" in (rule.fault(record(b"\0\0\0\0\1" + large)) or "")


CONSTRAINED = """
syntax = "proto3";
import "buf/validate/validate.proto";
message Order {
  string id = 1 [(buf.validate.field).string.min_len = 2];
  repeated int32 lines = 2 [(buf.validate.field).repeated.items.int32.gte = 0];
  repeated string texts = 3 [(buf.validate.field).cel = {
    id: "pairs" expression: "this.all(a, this.all(b, this.all(c, a + b + c != 'x')))"
  }];
  Order inner = 4;
  repeated Order more = 5;
}
"""


def schema_with_constraints(folder: Path, text: str = CONSTRAINED) -> Schema:
    file = folder / "order.proto"
    file.write_text(text)
    return Schema(format="protobuf", file=str(file), message="Order", protovalidate=True)


def test_constraints_run_in_rules_process_and_report_too_costly_records(tmp_path: Path) -> None:
    makers = RuleMakers(WaitBudget(), Counters(), Limits(rule_cpu_seconds=0.3))
    try:
        rule = makers.for_registries({}).of_constraints(schema_with_constraints(tmp_path), Side.VALUE)

        def http_response(value: bytes) -> str:
            assert steps_of(rule.fault, record(value)) > INLINE_STEPS
            return rule.fault(record(value)) or ""

        good = b"\n\2ab"
        assert http_response(good) == ""
        assert "id must be at least 2 characters (string.min_len)" in http_response(b"\n\1a")
        many = b"\1" * 1_000_000
        assert "too costly" not in http_response(good + b"\x12\xc0\x84\x3d" + many)
        nested = good
        for _ in range(90):
            nested = good + b"\x22" + varint(len(nested)) + nested
        assert http_response(nested) == ""
        assert "too costly to validate: too many items" in http_response(good + b"\x1a\1a" * 3_000)
        for items, limit in ((100_000, "rule_cpu_seconds"), (500_000, "rule_")):
            assert f"too costly to validate: the evaluation takes more than limits.{limit}" in http_response(
                good + b"\x2a\4\n\2ab" * items
            )
        assert http_response(good) == ""
        assert makers.pid is not None
    finally:
        makers.close()


def test_constraints_that_do_not_compile_are_rejected_at_rule_creation(rule_makers: RuleMakers, tmp_path: Path) -> None:
    given = schema_with_constraints(tmp_path, CONSTRAINED.replace("!= 'x'", "!="))

    with pytest.raises(SchemaUnusable, match="the constraints of Order cannot be compiled: "):
        rule_makers.for_registries({}).of_constraints(given, Side.VALUE)


def varint(number: int) -> bytes:
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + varint(number >> 7)
