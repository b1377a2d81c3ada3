"""Bytes are accepted as a datum of an Avro schema if and only if fastavro's reader accepts them."""

import json
from io import BytesIO
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.validation.rules.avro.datum import MAX_DEPTH, MOST_EMPTY_ITEMS
from sluicegate.validation.rules.avro.schema import avro_content, serialized_avro_content
from sluicegate.validation.rules.rule import Side, StepBudget
from sluicegate.validation.rules.schemas.content import SchemaUnusable
from sluicegate.validation.rules.schemas.schema_file import Envelope, FollowsSchema
from tests.validation.rules.records import record

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "com.example",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "count", "type": "int"},
        {"name": "price", "type": "double"},
        {"name": "weight", "type": "float"},
        {"name": "paid", "type": "boolean"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "raw", "type": "bytes"},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "SENT"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "sizes", "type": {"type": "map", "values": {"type": "array", "items": "int"}}},
        {"name": "before", "type": ["null", "Order"]},
        {"name": "nothing", "type": "null"},
    ],
}
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
LONGS, INTS = st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1)


def order_strategy(before: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "id": LONGS,
            "count": INTS,
            "price": st.floats(allow_nan=False),
            "weight": st.floats(width=32, allow_nan=False),
            "paid": st.booleans(),
            "note": st.none() | TEXTS,
            "raw": st.binary(max_size=8),
            "hash": st.binary(min_size=4, max_size=4),
            "state": st.sampled_from(["NEW", "SENT"]),
            "tags": st.lists(TEXTS, max_size=3),
            "sizes": st.dictionaries(TEXTS, st.lists(INTS, max_size=3), max_size=3),
            "before": before,
            "nothing": st.none(),
        }
    )


ORDERS = order_strategy(st.none() | order_strategy(st.none()))
PARSED = fastavro.parse_schema(ORDER)
CONTENT = avro_content(json.dumps(ORDER))


def encode_avro(datum: Any, schema: Any = PARSED) -> bytes:
    out = BytesIO()
    fastavro.schemaless_writer(out, schema, datum)
    return out.getvalue()


def fault(schema: Any, data: bytes) -> str | None:
    return avro_content(json.dumps(schema)).fault(data, StepBudget())


@given(ORDERS)
def test_accepts_data_written_by_fastavro(order: Any) -> None:
    assert CONTENT.fault(encode_avro(order), StepBudget()) is None


@given(ORDERS, st.data())
def test_rejects_truncated_or_lengthened_avro_data(order: Any, data: st.DataObject) -> None:
    datum = encode_avro(order)

    assert CONTENT.fault(datum[: data.draw(st.integers(0, len(datum) - 1))], StepBudget()) is not None
    words = CONTENT.fault(datum + b"\0", StepBudget())
    assert words == "does not match its Avro schema: 1 byte follows Order; was it written with this schema?"


@settings(max_examples=300)
@given(ORDERS, st.data())
def test_accepted_avro_data_is_read_completely_by_fastavro(order: Any, data: st.DataObject) -> None:
    datum = bytearray(encode_avro(order))
    for _ in range(data.draw(st.integers(1, 3))):
        datum[data.draw(st.integers(0, len(datum) - 1))] = data.draw(st.integers(0, 255))

    if CONTENT.fault(bytes(datum), StepBudget()) is None:
        stream = BytesIO(bytes(datum))
        fastavro.schemaless_reader(stream, PARSED, None)
        assert stream.tell() == len(datum)


LIST = {"type": "record", "name": "Link", "fields": [{"name": "next", "type": ["null", "Link"]}]}


@pytest.mark.parametrize(
    ("schema", "data", "said"),
    [
        ("boolean", b"\x02", "the datum cannot be read at byte 0: a boolean is one byte, 0 or 1"),
        ("boolean", b"", "the data ends within it"),
        ("int", b"\x80\x80\x80\x80\x10", "an int has 32 bits"),
        ("long", b"\xff" * 9 + b"\x02", "longer than ten bytes"),
        ("long", b"\xff" * 20, "longer than ten bytes"),
        ("double", b"\0" * 7, "the data ends within it"),
        ("string", b"\x01", "its length is negative"),
        ("string", b"\x04a", "the data ends within it"),
        ("string", b"\x04\xff\xff", "a string in it is not UTF-8"),
        ("bytes", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "the data ends within it"),
        (ORDER["fields"][8]["type"], b"\x04", "the enum has no such symbol"),
        (["null", "string"], b"\x04", "the union has no such branch"),
        (["null", "string"], b"\x01", "the union has no such branch"),
        (
            {"type": "array", "items": "int"},
            b"\x80\x80\x80\x80\x80\x80\x80\x80\x10\0\0",
            "more items than the data can hold",
        ),
        (
            {"type": "array", "items": "null"},
            b"\x80\x80\x80\x80\x80\x80\x80\x80\x10\0",
            "more items than the data can hold",
        ),
        (
            {"type": "map", "values": "null"},
            b"\x80\x80\x80\x80\x80\x80\x80\x80\x10\0",
            "more items than the data can hold",
        ),
        ({"type": "array", "items": "int"}, b"\x01\x04\0\0\0", "the length of one of its blocks is wrong"),
        ({"type": "array", "items": "int"}, b"\xff" * 9 + b"\x01\x02\0\0", "more items than the data can hold"),
        (LIST, b"\x02" * 1_000_000, f"more than {MAX_DEPTH} levels deep"),
    ],
)
def test_rejects_bytes_that_are_no_avro_datum(schema: Any, data: bytes, said: str) -> None:
    words = fault(schema, data)

    assert words is not None
    assert words.startswith("does not match its Avro schema: ")
    assert said in words


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ("null", b""),
        ("long", b"\xff" * 9 + b"\x01"),
        ({"type": "array", "items": "int"}, b"\x01\x02\0\x02\x02\0"),  # a block with its size, and one without
        ({"type": "array", "items": "null"}, b"\x06\0"),
        ({"type": "array", "items": {"type": "record", "name": "E", "fields": []}}, b"\x06\0"),
        (LIST, b"\x02" * (MAX_DEPTH // 2 - 1) + b"\0"),
        ({"type": "string", "logicalType": "uuid"}, b"\x02a"),
    ],
)
def test_accepts_unusual_but_valid_avro(schema: Any, data: bytes) -> None:
    assert fault(schema, data) is None


def test_limits_avro_items_without_bytes_across_blocks_as_in_java() -> None:
    most = b"\xee\xff\xff\xff\x0f"  # 2,147,483,639, in zig-zag
    nulls = {"type": "array", "items": "null"}

    assert fault(nulls, encode_avro([None] * 50_000, nulls)) is None
    assert fault(nulls, most + b"\0") is None
    assert fault(nulls, most + b"\x02\0") is not None
    assert MOST_EMPTY_ITEMS == 2_147_483_639


def test_avro_violation_names_the_field_and_quotes_no_content() -> None:
    address = {"type": "record", "name": "Address", "fields": [{"name": "zip", "type": "string"}]}
    schema = {"type": "record", "name": "com.example.Customer", "fields": [{"name": "home", "type": address}]}
    words = FollowsSchema(Side.VALUE, avro_content(json.dumps(schema))).fault(record(b"\x0csec\xffet"))

    assert words == (
        "the value does not match its Avro schema: Address.zip cannot be read at byte 1: a string in it is not UTF-8; "
        "was it written with this schema?"
    )


def test_avro_named_type_can_be_defined_in_a_referenced_schema() -> None:
    street = {"type": "record", "name": "com.example.Street", "fields": [{"name": "name", "type": "string"}]}
    home = {"type": "record", "name": "com.example.Home", "fields": [{"name": "street", "type": "Street"}]}
    person = {"type": "record", "name": "com.example.Person", "fields": [{"name": "home", "type": "Home"}]}

    content = avro_content(json.dumps(person), [json.dumps(street), json.dumps(home)])

    assert content.fault(b"\x02a", StepBudget()) is None
    assert content.fault(b"\x04a", StepBudget()) is not None
    assert content.record_name(b"") == "com.example.Person"


@pytest.mark.parametrize(
    "text",
    ["{", '{"type": "record"}', '"strang"', '{"type":"record","name":"A","fields":[{"name":"b","type":"B"}]}', "7"],
)
def test_rejects_text_that_is_no_avro_schema(text: str) -> None:
    with pytest.raises(SchemaUnusable):
        avro_content(text)


def test_exponentially_growing_avro_schema_is_compiled_quickly() -> None:
    fields = [
        {"name": f"f{i}", "type": {"type": "record", "name": f"R{i}", "fields": []}} if i == 0 else None
        for i in range(1)
    ]
    schemas = [json.dumps({"type": "record", "name": "R0", "fields": []})]
    for i in range(1, 60):
        fields = [{"name": name, "type": f"R{i - 1}"} for name in ("a", "b")]
        schemas.append(json.dumps({"type": "record", "name": f"R{i}", "fields": fields}))

    content = avro_content(json.dumps({"type": "array", "items": "R59"}), schemas)

    assert content.fault(b"\0", StepBudget()) is None


def test_rule_with_envelope_rejects_value_without_the_envelope() -> None:
    rule = FollowsSchema(Side.KEY, avro_content('"long"'), Envelope.CONFLUENT)

    assert rule.fault(record(key=b"\0\0\0\0\x07\x02")) is None
    assert rule.fault(record(key=None)) is None
    words = rule.fault(record(key=b"\x02"))
    assert words is not None
    assert "does not begin with a zero byte" in words


# Confluent's serializers for Java and Python write the bytes without a length, and its deserializers return all of
# them.
@pytest.mark.parametrize("data", [b"hello", b"\x0ahello", b""])
@pytest.mark.parametrize("schema", ["bytes", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}])
def test_a_bytes_schema_accepts_any_bytes_after_the_id(schema: Any, data: bytes) -> None:
    content = serialized_avro_content(json.dumps(schema))

    assert FollowsSchema(Side.VALUE, content, Envelope.CONFLUENT).fault(record(b"\0\0\0\0\x0a" + data)) is None
    assert content.record_name(data) == "bytes"
    assert serialized_avro_content(json.dumps(["null", schema])).fault(b"\x02hello", StepBudget()) is not None
    assert (avro_content(json.dumps(schema)).fault(data, StepBudget()) is None) == (data == b"\x0ahello")
