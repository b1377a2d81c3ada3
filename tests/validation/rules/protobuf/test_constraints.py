"""A schema's `buf.validate` constraints decide like protovalidate's own library on the same messages."""

import time
from functools import cache
from typing import Any

import pytest

pytest.importorskip("protovalidate", reason="protovalidate is not installed")

import protovalidate
from google.protobuf.json_format import ParseDict
from protobuf import Registry
from protobuf.wkt import FileDescriptorSet

from sluicegate.proxy.rules_process.protoc import descriptor_set_of
from sluicegate.validation.rules.protobuf.indexed_schema import indexed_protobuf_content
from sluicegate.validation.rules.protobuf.schema import protobuf_content
from sluicegate.validation.rules.rule import UNBOUNDED
from sluicegate.validation.rules.schemas.content import HasConstraints, SchemaUnusable
from tests.validation.rules.records import record
from tests.validation.rules.steps import steps_of

HEAD = """
syntax = "proto2";
package shop;
import "buf/validate/validate.proto";
import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/field_mask.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "shop/open.proto";
extend buf.validate.StringRules {
  optional string starts = 80048952 [(buf.validate.predefined).cel = {
    id: "string.starts" message: "starts otherwise" expression: "this.startsWith(rule)"
  }];
}
enum State { UNKNOWN = 0; SENT = 1; }
message Line { optional string sku = 1 [(buf.validate.field).string.min_len = 2]; }
"""
OPEN = 'syntax = "proto3"; package shop.open; enum Open { NONE = 0; ONE = 1; }'
Json = dict[str, Any]
CASES: dict[str, tuple[str, list[Json]]] = {
    "len": ("optional string a = 1 [(buf.validate.field).string.len = 2];", [{"a": "éé"}, {"a": "abc"}]),
    "min-bytes": ("optional string a = 1 [(buf.validate.field).string.min_bytes = 3];", [{"a": "éé"}, {"a": "ab"}]),
    "email": (
        "optional string a = 1 [(buf.validate.field).string.email = true];",
        [{"a": "a@example.com"}, {"a": "a@"}, {"a": "a b@c"}, {"a": "é@example.com"}],
    ),
    "uuid": (
        "optional string a = 1 [(buf.validate.field).string.uuid = true];",
        [{"a": "123e4567-e89b-12d3-a456-426614174000"}, {"a": "123e4567e89b12d3a456426614174000"}],
    ),
    "ip": ("optional string a = 1 [(buf.validate.field).string.ip = true];", [{"a": "::1"}, {"a": "1.2.3.256"}]),
    "hostname": (
        "optional string a = 1 [(buf.validate.field).string.hostname = true];",
        [{"a": "example.com"}, {"a": "-a.com"}, {"a": "1.2"}],
    ),
    "uri": (
        "optional string a = 1 [(buf.validate.field).string.uri = true];",
        [{"a": "https://example.com/%20"}, {"a": "//no/scheme"}, {"a": "a:%zz"}],
    ),
    "pattern": ("optional string a = 1 [(buf.validate.field).string.pattern = '^a+$'];", [{"a": "aa"}, {"a": "ab"}]),
    "string-in": ("optional string a = 1 [(buf.validate.field).string = {in: ['x', 'y']}];", [{"a": "x"}, {"a": "z"}]),
    "prefix": ("optional string a = 1 [(buf.validate.field).string.prefix = 'o-'];", [{"a": "o-1"}, {"a": "p"}]),
    "bytes": ("optional bytes a = 1 [(buf.validate.field).bytes.max_len = 2];", [{"a": "AAA="}, {"a": "AAAA"}]),
    "int32": (
        "optional int32 a = 1 [(buf.validate.field).int32 = {gt: 0, lte: 9}];",
        [{"a": 9}, {"a": 0}, {"a": 10}, {}],
    ),
    "excluded": ("optional int64 a = 1 [(buf.validate.field).int64 = {gt: 9, lt: 1}];", [{"a": 0}, {"a": 5}]),
    "uint64": (
        "optional uint64 a = 1 [(buf.validate.field).uint64.gte = 18446744073709551615];",
        [{"a": 2**64 - 1}, {"a": 2**64 - 2}],
    ),
    "not-in": ("optional sint32 a = 1 [(buf.validate.field).sint32 = {not_in: [-1]}];", [{"a": 1}, {"a": -1}]),
    "double": (
        "optional double a = 1 [(buf.validate.field).double = {finite: true, gte: 0.5}];",
        [{"a": 0.5}, {"a": "Infinity"}, {"a": "NaN"}, {"a": 0.4}],
    ),
    "bool": ("optional bool a = 1 [(buf.validate.field).bool.const = true];", [{"a": True}, {"a": False}]),
    "enum": (
        "repeated State a = 1 [(buf.validate.field).repeated.items.enum = {not_in: [0]}];",
        [{"a": ["SENT"]}, {"a": ["SENT", "UNKNOWN"]}],
    ),
    "defined-only": (
        "optional shop.open.Open a = 1 [(buf.validate.field).enum.defined_only = true];",
        [{"a": 1}, {"a": 7}],
    ),
    "unique": (
        "repeated string a = 1 [(buf.validate.field).repeated = {unique: true, min_items: 1}];",
        [{"a": ["x", "y"]}, {"a": ["x", "x"]}, {}],
    ),
    "items": (
        "repeated string a = 1 [(buf.validate.field).repeated.items.string.min_len = 2];",
        [{"a": ["xx"]}, {"a": ["xx", "x"]}],
    ),
    "map-keys": (
        "map<string, int32> a = 1 [(buf.validate.field).map.keys.string.max_len = 2];",
        [{"a": {"k": 1}}, {"a": {"secret": 1}}],
    ),
    "map-values": (
        "map<int32, int32> a = 1 [(buf.validate.field).map = {max_pairs: 2, values: {int32: {lt: 5}}}];",
        [{"a": {"1": 1}}, {"a": {"1": 5}}, {"a": {"1": 1, "2": 1, "3": 1}}],
    ),
    "required": ("optional string a = 1 [(buf.validate.field).required = true];", [{"a": ""}, {}]),
    "ignored": (
        "optional string a = 1 [(buf.validate.field) = {ignore: IGNORE_IF_ZERO_VALUE, string: {min_len: 2}}];",
        [{"a": ""}, {"a": "x"}, {}],
    ),
    "oneof": ("oneof one { option (buf.validate.oneof).required = true; int32 a = 1; int32 b = 2; }", [{"a": 0}, {}]),
    "message-oneof": (
        'option (buf.validate.message).oneof = {fields: ["a", "b"], required: true};'
        "optional int32 a = 1; optional int32 b = 2;",
        [{"a": 1}, {"a": 1, "b": 1}, {}],
    ),
    "past": (
        "optional google.protobuf.Timestamp a = 1 [(buf.validate.field).timestamp.lt_now = true];",
        [{"a": "2020-01-01T00:00:00Z"}, {"a": "9000-01-01T00:00:00Z"}],
    ),
    "within": (
        "optional google.protobuf.Timestamp a = 1 [(buf.validate.field).timestamp.within = {seconds: 86400}];",
        [{"a": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}, {"a": "2020-01-01T00:00:00Z"}],
    ),
    "duration": (
        "optional google.protobuf.Duration a = 1 [(buf.validate.field).duration.lte = {nanos: 500}];",
        [{"a": "0.000000500s"}, {"a": "0.000000501s"}],
    ),
    "any": (
        "optional google.protobuf.Any a = 1 [(buf.validate.field).any = {in: ['t/google.protobuf.Duration']}];",
        [
            {"a": {"@type": "t/google.protobuf.Duration", "value": "1s"}},
            {"a": {"@type": "t/google.protobuf.Timestamp", "value": "2020-01-01T00:00:00Z"}},
        ],
    ),
    "wrapper": (
        "optional google.protobuf.UInt32Value a = 1 [(buf.validate.field).uint32.gte = 3];",
        [{"a": 3}, {"a": 2}, {}],
    ),
    "nested": (
        "repeated Line a = 1; map<string, Line> b = 2;",
        [{"a": [{"sku": "x1"}]}, {"b": {"secret": {"sku": "x"}}}],
    ),
    "field-cel": (
        'optional string a = 1 [(buf.validate.field).cel = {id: "a" message: "no A" expression: "this != \'A\'"}];',
        [{"a": "B"}, {"a": "A"}],
    ),
    "message-cel": (
        'option (buf.validate.message).cel = {id: "sum" expression: "this.a < 10 ? \'\' : \'not \' + string(this.a)"};'
        "optional int32 a = 1; optional int32 b = 2;",
        [{"a": 4, "b": 5}, {"a": 4321, "b": 5}],
    ),
    "cel-expression": (
        'optional int32 a = 1 [(buf.validate.field).cel_expression = "this % 2 == 0"];',
        [{"a": 4}, {"a": 5}],
    ),
    "predefined": (
        "optional string a = 1 [(buf.validate.field).string.(shop.starts) = 'o'];",
        [{"a": "of"}, {"a": "to"}],
    ),
}  # fmt: skip


def schema_of(*messages: str) -> bytes:
    return descriptor_set_of("shop.proto", HEAD + "\n".join(messages), {"shop/open.proto": OPEN})


@pytest.fixture(scope="module")
def schema() -> bytes:
    return schema_of(*(f"message {message_name(case)} {{ {fields} }}" for case, (fields, _) in CASES.items()))


def message_name(case: str) -> str:
    return "".join(word.title() for word in case.split("-")) + "Case"


@cache
def registry_of(schema: bytes) -> Registry:
    return FileDescriptorSet.from_binary(schema).to_registry()


def violated_rules_by_library(schema: bytes, message: str, data: bytes) -> list[str]:
    """Return the ids of the rules that the library reports as violated, with another Protobuf runtime."""
    registry = registry_of(schema)
    found = registry.message(message)
    assert found is not None
    violations = protovalidate.Validator(registry).collect_violations(found.type.from_binary(data))
    return [each.proto.rule_id for each in violations]


def encode_protobuf(content: Any, value: Json) -> bytes:
    from google.protobuf.message_factory import GetMessageClass  # noqa: PLC0415

    message = GetMessageClass(content.descriptor)()
    return ParseDict(value, message, descriptor_pool=content.descriptor.file.pool).SerializeToString()


@pytest.mark.parametrize("case", CASES)
def test_constraint_verdicts_equal_those_of_the_protovalidate_library(schema: bytes, case: str) -> None:
    content = protobuf_content(schema, f"shop.{message_name(case)}")
    constraints = content.constraints()
    verdicts = set()

    for value in CASES[case][1]:
        data = encode_protobuf(content, value)
        ids = violated_rules_by_library(schema, f"shop.{message_name(case)}", data)
        violation_of = constraints.fault(record(data))

        verdicts.add(bool(ids))
        assert (violation_of is not None) == bool(ids), (value, violation_of)
        if violation_of is not None:
            assert violation_of.startswith(f"does not meet the constraints of shop.{message_name(case)}: ")
            assert violation_of.endswith(f"({ids[0]})")

    assert verdicts == {True, False}, "the case shows only one outcome"


def test_constraint_violation_names_the_field_and_quotes_no_content(schema: bytes) -> None:
    def violation_of(case: str) -> str | None:
        content = protobuf_content(schema, f"shop.{message_name(case)}")
        return content.constraints().fault(record(encode_protobuf(content, CASES[case][1][1])))

    assert violation_of("map-keys") == (
        "does not meet the constraints of shop.MapKeysCase: a[…] must be at most 2 characters (string.max_len)"
    )
    assert violation_of("items") == (
        "does not meet the constraints of shop.ItemsCase: a[1] must be at least 2 characters (string.min_len)"
    )
    assert (violation_of("nested") or "").startswith("does not meet the constraints of shop.NestedCase: b[…].sku ")
    assert violation_of("field-cel") == "does not meet the constraints of shop.FieldCelCase: a no A (a)"
    assert violation_of("message-cel") == "does not meet the constraints of shop.MessageCelCase: (sum)"
    assert (
        violation_of("predefined")
        == "does not meet the constraints of shop.PredefinedCase: a starts otherwise (string.starts)"
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ('optional int32 a = 1 [(buf.validate.field).cel = {id: "x" expression: "this <"}];', "expression x"),
        ("optional int32 a = 1 [(buf.validate.field).string.min_len = 1];", "shop.Bad cannot be compiled"),
        ('option (buf.validate.message).oneof = {fields: ["b"]}; optional int32 a = 1;', "shop.Bad"),
    ],
)
def test_uncompilable_constraints_make_the_schema_unusable(fields: str, words: str) -> None:
    schema = schema_of(f"message Bad {{ {fields} }} message Holds {{ repeated Bad bad = 1; }}")

    for content in (protobuf_content(schema, "shop.Holds"), indexed_protobuf_content(schema)):
        assert isinstance(content, HasConstraints)
        with pytest.raises(SchemaUnusable, match=words):
            content.constraints()


def test_registered_schema_applies_constraints_of_the_indexed_message() -> None:
    schema = schema_of(
        "message A { optional int32 a = 1; } message B { optional int32 a = 1 [(buf.validate.field).int32.gt = 1]; }"
    )
    content = indexed_protobuf_content(schema)
    assert isinstance(content, HasConstraints)
    constraints = content.constraints()
    assert constraints is not None
    one = b"\x08\x01"

    assert constraints.fault(record(b"\x02\x02" + one)) is None  # Line is the first message
    assert constraints.fault(record(b"\x02\x04" + one)) == (
        "does not meet the constraints of shop.B: a must be greater than 1 (int32.gt)"
    )
    assert constraints.fault(record(b"\x02\x04" + b"\x08")) == "cannot be read as shop.B"
    assert constraints.fault(record(b"\x02\x08" + one)) is None
    assert steps_of(constraints.fault, record(b"\x02\x04" + one)) >= UNBOUNDED


def test_two_versions_of_a_schema_keep_separate_constraints() -> None:
    versions = [
        protobuf_content(
            schema_of(f"message A {{ optional int32 a = 1 [(buf.validate.field).int32.gt = {n}]; }}"), "shop.A"
        )
        for n in (1, 5)
    ]
    constraints = [each.constraints() for each in versions]

    assert [each.fault(record(b"\x08\x03")) is None for each in constraints] == [True, False]


def test_missing_protovalidate_library_is_reported_with_the_install_command(
    schema: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluicegate.validation.rules.protobuf.constraints.find_spec", lambda _name: None)

    with pytest.raises(SchemaUnusable, match=r"pip install 'sluicegate\[rules,protovalidate\]'"):
        protobuf_content(schema, "shop.LenCase").constraints()
