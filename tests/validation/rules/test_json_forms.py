"""The JSON forms of Avro and Protobuf data contain the values that the formats' own libraries read."""

import json
import struct
from base64 import b64encode
from datetime import UTC, date, datetime, time
from decimal import Decimal
from io import BytesIO
from typing import Any
from uuid import UUID

import fastavro
import pytest
from fastavro.utils import generate_many
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

from sluicegate.proxy.rules_process.protoc import descriptor_set_of
from sluicegate.validation.rules.avro.json_form import AvroJson, BytesJson
from sluicegate.validation.rules.avro.plan import plan_of
from sluicegate.validation.rules.cel.variables import NotOfSchema
from sluicegate.validation.rules.protobuf.schema import ProtobufContent
from sluicegate.validation.rules.rule import INLINE_STEPS, StepBudget
from sluicegate.validation.rules.schemas.json_form import NoJsonForm
from sluicegate.validation.rules.schemas.json_form import date as date_text
from tests.validation.rules.avro.test_schema import ORDER
from tests.validation.rules.cel.test_schema_expressions import PROTO, avro_data
from tests.validation.rules.steps import steps_of


def avro_type(kind: str, logical: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical, **more}


FIXED = {"type": "fixed", "name": "F", "size": 16}
AT = datetime(2026, 11, 27, 12, 0, 5, 250_000, UTC)


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (avro_type("long", "timestamp-millis"), AT, '"2026-11-27T12:00:05.25Z"'),
        (
            avro_type("long", "timestamp-micros"),
            datetime(1969, 12, 31, 23, 59, 59, 1, UTC),
            '"1969-12-31T23:59:59.000001Z"',
        ),
        (avro_type("long", "local-timestamp-millis"), datetime(2026, 2, 28), '"2026-02-28T00:00:00Z"'),
        (avro_type("int", "date"), date(2024, 2, 29), '"2024-02-29"'),
        (avro_type("int", "time-millis"), time(23, 5, 0, 7_000), '"23:05:00.007"'),
        (avro_type("long", "time-micros"), time(1, 2, 3), '"01:02:03"'),
        (avro_type("bytes", "decimal", precision=30, scale=2), Decimal("-1234567890123456789012.50"),
         "-1234567890123456789012.50"),
        (avro_type("bytes", "decimal", precision=4, scale=4), Decimal("0.0005"), "0.0005"),
        (avro_type("fixed", "decimal", precision=20, scale=0, name="D", size=16), Decimal(-7), "-7"),
        (avro_type("string", "uuid"), UUID(int=7), '"00000000-0000-0000-0000-000000000007"'),
        (FIXED | {"logicalType": "uuid"}, UUID(int=7).bytes, '"00000000-0000-0000-0000-000000000007"'),
        (FIXED, b"\xff" * 16, '"/////////////////////w=="'),
        ("bytes", b"\0\xff", '"AP8="'),
        ("float", 0.1, "0.1"),
        ("float", 16777217.0, "16777216"),
        ("float", 3.4028235e38, "3.4028235e+38"),
        ("double", 0.1, "0.1"),
        ("double", float("nan"), '"NaN"'),
        ("float", float("-inf"), '"-Infinity"'),
        ("long", -(2**63), "-9223372036854775808"),
        (["null", "string"], "\0é", '"\\u0000é"'),
        (["null", {"type": "map", "values": ["null", "boolean"]}], {"a": True, "b": None}, '{"a":true,"b":null}'),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", '"B"'),
    ],
)  # fmt: skip
def test_avro_type_without_json_equivalent_has_one_json_form(schema: Any, value: Any, text: str) -> None:
    found = AvroJson(plan_of(schema)).text(avro_data(schema, value), StepBudget()).decode()

    assert found == text or float(found) == float(text)


def json_with_floats(text: str | bytes) -> Any:
    """JSON with numbers of four bytes, because fastavro makes doubles of them."""
    return json.loads(text, parse_float=lambda number: struct.unpack("<f", struct.pack("<f", float(number)))[0])


def test_json_form_of_avro_equals_the_values_read_by_fastavro() -> None:
    form = AvroJson(plan_of(ORDER))
    for order in generate_many(ORDER, 300):
        data = avro_data(ORDER, order)
        read = fastavro.schemaless_reader(BytesIO(data), ORDER)
        expected = json.dumps(read, default=lambda raw: b64encode(raw).decode())
        assert json_with_floats(form.text(data, StepBudget())) == json_with_floats(expected)
        with pytest.raises(NotOfSchema):
            form.text(data[: len(data) // 2], StepBudget())


def test_date_text_equals_the_iso_date() -> None:
    for days in range(-719_162, 2_932_896, 997):
        assert date_text(days) == date.fromordinal(days + 719_163).isoformat()
    assert date_text(2**31 - 1) == "5881580-07-11", "not a date format"


MORE_PROTO = """
syntax = "proto2";
package forms;
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "confluent/type/decimal.proto";
message All {
  optional int64 big = 1; optional uint64 huge = 2; optional float single = 3; optional double whole = 4;
  optional bytes raw = 5; optional bool yes = 6; optional string text = 7;
  optional google.protobuf.Timestamp at = 8; optional google.protobuf.Duration took = 9;
  optional google.protobuf.Struct free = 10; optional google.protobuf.Int64Value wrapped = 11;
  map<bool, All> inner = 12; map<int64, float> numbers = 13; repeated All more = 14;
  optional confluent.type.Decimal price = 15; optional google.protobuf.FloatValue ratio = 16;
  oneof how { string card = 17; uint32 voucher = 18; }
  optional group Part = 19 { optional int32 n = 1; }
}
"""


def class_of(text: str, name: str) -> Any:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptor_set_of("forms.proto", text, {})).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def protobuf_json(message: Any) -> Any:
    form = ProtobufContent(type(message)).json_form()
    return json.loads(form.text(message.SerializeToString(), StepBudget()))


def test_json_form_of_protobuf_equals_the_library_except_64_bit_numbers() -> None:
    kind = class_of(MORE_PROTO, "forms.All")
    message = kind(big=-(2**63), huge=2**64 - 1, single=0.1, whole=0.1, raw=b"\xff", yes=False, text="\0é", voucher=0)
    message.at.FromDatetime(AT)
    message.took.FromMilliseconds(-1500)
    message.free.update({"a": [1, None, {"b": "c"}], "d": True})
    message.wrapped.value = 7
    message.ratio.value = 0.2
    message.inner[True].text = "in"
    message.numbers[5] = 0.5
    message.more.add(text="x")
    message.price.value, message.price.scale = (-12345).to_bytes(3, signed=True), 2
    message.part.n = 4

    found = protobuf_json(message)

    own = json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    own |= {"big": -(2**63), "huge": 2**64 - 1, "wrapped": 7, "price": -123.45, "at": "2026-11-27T12:00:05.25Z"}
    own["took"] = "-1.5s"
    assert found == own


def test_protobuf_json_always_contains_fields_without_presence() -> None:
    kind = class_of(PROTO, "shop.Sale")

    assert protobuf_json(kind()) == {"id": "", "amount": 0.0, "lines": [], "sizes": {}, "state": "NEW"}
    assert protobuf_json(kind(rank=0, card="")).items() >= {"rank": 0, "card": ""}.items()
    assert protobuf_json(kind.FromString(b"\x38\x09"))["state"] == 9, "a symbol that this schema does not have"


def test_too_many_avro_items_have_no_json_form_and_costly_data_is_estimated() -> None:
    empty = {"type": "array", "items": {"type": "record", "name": "Nothing", "fields": []}}
    form = AvroJson(plan_of(empty))
    assert (
        form.text(avro_data(empty, [{}] * 100), StepBudget()) == json.dumps([{}] * 100, separators=(",", ":")).encode()
    )
    with pytest.raises(NoJsonForm, match="more than 100 items without bytes"):
        form.text(avro_data(empty, [{}] * 101), StepBudget())
    assert steps_of(form.text, bytes(1 << 20)) > INLINE_STEPS

    kind = class_of(MORE_PROTO, "forms.All")
    with pytest.raises(NoJsonForm, match="not UTF-8"):
        ProtobufContent(kind).json_form().text(b"\x3a\x01\xff", StepBudget())
    assert BytesJson().text(b"\xff", StepBudget()) == b'"/w=="'
