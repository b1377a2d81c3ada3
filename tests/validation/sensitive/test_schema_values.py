"""Strings in Avro and Protobuf values are masked in place. The oracles are fastavro, Google's Protobuf and Confluent's
serializers, which read the masked values.
"""

import gc
import io
import json
from collections.abc import Callable
from functools import cache
from typing import Any

import fastavro
import pytest

from sluicegate.proxy.rules_process.protoc import OWN_NAME, descriptor_set_of
from sluicegate.validation.rules.avro.schema import avro_content, serialized_avro_content
from sluicegate.validation.rules.json.schema import json_schema_content
from sluicegate.validation.rules.protobuf.indexed_schema import indexed_protobuf_content
from sluicegate.validation.rules.rule import RuledRecord, SchemaError
from sluicegate.validation.rules.schemas.content import Content
from sluicegate.validation.sensitive.edits import Unmaskable
from sluicegate.validation.sensitive.paths import Action, FieldPolicy, path_of, tree_of
from sluicegate.validation.sensitive.schema_values import SchemaValues
from tests.validation.rules.records import record

LONG = "*" * 200
FRAMING = b"\0\0\0\0\x07"


class FramedSchema:
    """Finds the same schema for all records, which have an id before the data. `indexes`: the message indexes of
    Protobuf, from a header."""

    def __init__(self, content: Content, indexes: bytes = b"") -> None:
        self._content = content
        self._indexes = indexes

    def known_content(self, record: RuledRecord) -> tuple[Content, bytes] | None:
        return self._content, self._data(record)

    def content(self, record: RuledRecord) -> tuple[Content, bytes, str] | None:
        return self._content, self._data(record), "schema 7"

    def _data(self, record: RuledRecord) -> bytes:
        assert record.value is not None
        return self._indexes + record.value if self._indexes else record.value[len(FRAMING) :]


def field_policy(*paths: str, tags: tuple[str, ...] = (), action: Action = Action.MASK) -> FieldPolicy:
    return FieldPolicy("s", tuple(map(path_of, paths)), action, LONG, b"k" * 16, frozenset(tags))


def mask_value(content: Content, value: bytes, policy: FieldPolicy, indexes: bytes = b"") -> bytes:
    values = SchemaValues([policy], (tree_of([policy]),), FramedSchema(content, indexes))
    found = values.masked(record(value), lambda _work: None, 1 << 24)
    return value if found is None else found.data


ITEM = {
    "type": "record",
    "name": "Item",
    "fields": [{"name": "sku", "type": "string", "confluent:tags": ["PII"]}, {"name": "n", "type": "long"}],
}
AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "mail", "type": ["null", "string"], "confluent:tags": ["PII", "MAIL"]},
        {"name": "items", "type": {"type": "array", "items": ITEM}},
        {"name": "labels", "type": {"type": "map", "values": ["string", "int"]}, "confluent:tags": ["LABEL"]},
        {"name": "raw", "type": "bytes"},
        {"name": "next", "type": ["null", "Order"]},
        {"name": "id", "type": "string"},
    ],
}
ORDER: dict[str, Any] = {
    "mail": "me@example.com",
    "items": [{"sku": "a", "n": 1}, {"sku": "b" * 300, "n": -1}],
    "labels": {"eu": "x", "count": 5, "us": "y"},
    "raw": b"me@example.com",
    "next": {"mail": None, "items": [], "labels": {}, "raw": b"", "next": None, "id": "inner"},
    "id": "outer",
}


def avro_bytes(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def order_with_changes(changes: dict[str, Any]) -> dict[str, Any]:
    return {**ORDER, **changes}


ITEMS = [{"sku": LONG, "n": 1}, {"sku": LONG, "n": -1}]


@pytest.mark.parametrize(
    ("policy", "changes"),
    [
        (field_policy("mail"), {"mail": LONG}),
        (field_policy("items.sku"), {"items": ITEMS}),
        (field_policy("labels.eu"), {"labels": {"eu": LONG, "count": 5, "us": "y"}}),
        (field_policy("next.id"), {"next": {**ORDER["next"], "id": LONG}}),
        (field_policy("*.id", "id"), {"next": {**ORDER["next"], "id": LONG}, "id": LONG}),
        (field_policy("absent", "mail.inner", "items.sku.x"), {}),
        (field_policy(tags=("PII",)), {"mail": LONG, "items": ITEMS}),
        (field_policy("id", tags=("MAIL", "OTHER")), {"mail": LONG, "id": LONG}),
    ],
)
def test_masking_avro_changes_only_the_configured_fields(policy: FieldPolicy, changes: dict[str, Any]) -> None:
    found = mask_value(avro_content(json.dumps(AVRO)), FRAMING + avro_bytes(AVRO, ORDER), policy)

    assert found == FRAMING + avro_bytes(AVRO, order_with_changes(changes))


def test_masking_updates_the_sizes_of_avro_blocks() -> None:
    """A reader that does not want the array skips it by the sizes of its blocks."""
    items = {"name": "a", "type": {"type": "array", "items": "string"}}
    schema = {"type": "record", "name": "R", "fields": [items, {"name": "n", "type": "int"}]}
    data = b"\x03\x08\x02x\x02y" + b"\x01\x02\x00" + b"\x00" + b"\x0e"
    assert fastavro.schemaless_reader(io.BytesIO(data), schema) == {"a": ["x", "y", ""], "n": 7}
    only_n = {**schema, "fields": [{"name": "n", "type": "int"}]}

    found = mask_value(avro_content(json.dumps(schema)), FRAMING + data, field_policy("a"))[5:]

    assert fastavro.schemaless_reader(io.BytesIO(found), schema) == {"a": [LONG] * 3, "n": 7}
    assert fastavro.schemaless_reader(io.BytesIO(found), schema, only_n) == {"n": 7}
    assert found[-2:] == data[-2:]


@pytest.mark.parametrize(
    ("data", "policy", "words"),
    [
        (avro_bytes(AVRO, ORDER)[:-1], field_policy("mail"), "does not match its Avro schema"),
        (avro_bytes(AVRO, ORDER) + b"\0", field_policy("mail"), "does not match its Avro schema"),
        (b"", field_policy("mail"), "does not match its Avro schema"),
        (b"\x04", field_policy("mail"), "does not match its Avro schema"),
        (avro_bytes(AVRO, ORDER), field_policy("raw"), "raw is bytes"),
        (avro_bytes(AVRO, ORDER), field_policy("labels"), "labels is a map"),
        (avro_bytes(AVRO, ORDER), field_policy("labels.count"), "is a number"),
        (avro_bytes(AVRO, ORDER), field_policy("next"), "next is a record"),
        (avro_bytes(AVRO, ORDER), field_policy("items.n"), "is a number"),
        (avro_bytes(AVRO, ORDER), field_policy(tags=("LABEL",)), "labels is a number"),
        (avro_bytes(AVRO, ORDER), field_policy(tags=("PII",), action=Action.REJECT), "Order.mail is not allowed"),
    ],
)
def test_rejects_avro_that_cannot_be_masked(data: bytes, policy: FieldPolicy, words: str) -> None:
    with pytest.raises(Unmaskable, match=words) as refused:
        mask_value(avro_content(json.dumps(AVRO)), FRAMING + data, policy)
    assert "example" not in str(refused.value)


def test_masking_rejects_truncated_avro() -> None:
    content, data = avro_content(json.dumps(AVRO)), avro_bytes(AVRO, ORDER)

    for size in range(len(data)):
        with pytest.raises(Unmaskable):
            mask_value(content, FRAMING + data[:size], field_policy("mail"))


def test_rejects_sensitive_fields_in_an_avro_bytes_schema() -> None:
    assert (
        mask_value(serialized_avro_content('"bytes"'), FRAMING + b"x", field_policy("x", tags=("PII",)))
        == FRAMING + b"x"
    )


PROTO = """
syntax = "proto3";
package shop;
import "confluent/meta.proto";
message Order {
  map<string, string> labels = 1 [(confluent.field_meta).tags = "LABEL"];
  string mail = 2 [(confluent.field_meta) = {doc: "d", tags: ["X", "PII"]}];
  repeated Item items = 3;
  bytes raw = 4;
  oneof either { string text = 5; int64 number = 6; }
  repeated int32 packed = 7;
  repeated string others = 8;
  map<int32, Item> by_number = 9;
  Order next = 10;
  MORE
  message Item { string sku = 1 [(confluent.field_meta).tags = "PII"]; int64 n = 2; }
}
"""


@cache
def proto_content(more: str = "") -> Any:
    return indexed_protobuf_content(descriptor_set_of(OWN_NAME, PROTO.replace("MORE", more), {}))


NEWER = "string added = 20; repeated sint64 numbers = 21; fixed32 f = 22; Item item = 23;"


def proto_order(content: Any) -> Any:
    of = content.named(b"\0")[0][0]
    order = of._new(mail="me@example.com", raw=b"raw", text="secret", packed=[1, 300], others=["a", "b" * 200])
    order.labels["eu"] = "x"
    order.labels["us"] = "y"
    order.items.add(sku="a", n=1)
    order.items.add(sku="b" * 300, n=-1)
    order.by_number[-4].sku = "four"
    order.next.mail = "you@example.com"
    order.next.items.add(sku="c", n=3)
    if "added" in of.descriptor.fields_by_name:
        order.added, order.f, order.item.sku = "unknown", 9, "also unknown"
        order.numbers.extend([-1, 5])
    return order


def set_all(order: Any, *names: str) -> None:
    for name in names:
        setattr(order, name, LONG)


@pytest.mark.parametrize(
    ("policy", "change"),
    [
        (field_policy("mail"), lambda o: set_all(o, "mail")),
        (field_policy("text"), lambda o: set_all(o, "text")),
        (field_policy("items.sku"), lambda o: [set_all(each, "sku") for each in o.items]),
        (field_policy("labels.eu"), lambda o: o.labels.update({"eu": LONG})),
        (field_policy("others"), lambda o: o.others.__setitem__(slice(None), [LONG, LONG])),
        (field_policy(r"by_number.-4.sku"), lambda o: set_all(o.by_number[-4], "sku")),
        (field_policy("by_number.4.sku", "absent", "mail.x"), lambda _o: None),
        (field_policy("next.*.sku"), lambda o: set_all(o.next.items[0], "sku")),
        (
            field_policy(tags=("PII",)),
            lambda o: [
                *(set_all(each, "mail") for each in (o, o.next)),
                *(set_all(each, "sku") for each in (*o.items, *o.next.items, o.by_number[-4])),
            ],
        ),
        (field_policy(tags=("LABEL",)), lambda o: o.labels.update({"eu": LONG, "us": LONG})),
    ],
)
@pytest.mark.parametrize("indexes", [b"", b"\0"])
def test_masking_protobuf_changes_only_the_configured_fields(policy: FieldPolicy, change: Any, indexes: bytes) -> None:
    """The writer's schema is newer than the registry's: its other fields are unknown, and kept."""
    newer = proto_content(NEWER)
    order = proto_order(newer)
    data = order.SerializeToString(deterministic=True)
    value = data if indexes else FRAMING + b"\0" + data

    found = mask_value(proto_content(), value, policy, indexes)

    prefix = b"" if indexes else FRAMING + b"\0"
    assert found[: len(prefix)] == prefix
    read = type(order).FromString(found[len(prefix) :])
    change(order)
    assert read == order
    assert read.SerializeToString(deterministic=True) == order.SerializeToString(deterministic=True)


@pytest.mark.parametrize(
    ("body", "policy", "words"),
    [
        (b"\x12\x05ab", field_policy("mail"), "does not match its Protobuf schema"),
        (b"\x12\x02a\xff", field_policy("mail"), "does not match its Protobuf schema"),
        (b"\x1b", field_policy("mail"), "does not match its Protobuf schema"),
        (b"\x1c", field_policy("mail"), "does not match its Protobuf schema"),
        (b"\x00\x00", field_policy("mail"), "does not match its Protobuf schema"),
        (b"\x0f", field_policy("mail"), "does not match its Protobuf schema"),
        (b"\x22\x01x", field_policy("raw"), "raw is bytes"),
        (b"\x30\x05", field_policy("number"), "number is a number"),
        (b"\x1a\x02\x10\x01", field_policy("items"), "items is a message"),
        (b"\x0a\x02\x12\x00", field_policy("labels"), "labels is a map"),
    ],
)
def test_rejects_protobuf_that_cannot_be_masked(body: bytes, policy: FieldPolicy, words: str) -> None:
    with pytest.raises(Unmaskable, match=words):
        mask_value(proto_content(), FRAMING + b"\0" + body, policy)


def test_invalid_message_indexes_are_rejected() -> None:
    with pytest.raises(Unmaskable, match="message indexes"):
        mask_value(proto_content(), FRAMING + b"\x02\x10" + b"\x12\x01x", field_policy("mail"))


def test_masks_groups_and_map_entries_with_the_key_last() -> None:
    text = 'syntax = "proto2"; message M { optional group G = 1 { optional string s = 2; } map<string, string> m = 3; }'
    content: Any = indexed_protobuf_content(descriptor_set_of(OWN_NAME, text, {}))
    new = content.named(b"\0")[0][0]._new
    body = b"\x0b\x12\x01x\x0c" + b"\x1a\x06\x12\x01v\x0a\x01k"

    found = mask_value(content, FRAMING + b"\0" + body, field_policy("g.s", "m.k"))[6:]

    read = new.FromString(found)
    assert (read.g.s, dict(read.m)) == (LONG, {"k": LONG})


WRAPPED = """syntax = "proto3";
import "google/protobuf/any.proto"; import "google/protobuf/wrappers.proto"; import "confluent/meta.proto";
message M {
  google.protobuf.StringValue one = 1 [(confluent.field_meta).tags = "PII"];
  repeated google.protobuf.StringValue many = 2 [(confluent.field_meta).tags = "PII"];
  map<string, google.protobuf.StringValue> by_key = 3 [(confluent.field_meta).tags = "PII"];
  google.protobuf.Any any = 4;
}"""


def wrapped_message() -> tuple[Any, Any]:
    content: Any = indexed_protobuf_content(descriptor_set_of(OWN_NAME, WRAPPED, {}))
    message = content.named(b"\0")[0][0]._new()
    message.one.value = "a"
    message.many.add(value="b")
    message.by_key["k"].value = "c"
    return content, message


@pytest.mark.parametrize(
    ("policy", "changed"),
    [
        (field_policy(tags=("PII",)), (LONG, LONG, LONG)),
        (field_policy("one"), (LONG, "b", "c")),
        (field_policy("one.value", "many"), (LONG, LONG, "c")),
        (field_policy("by_key.*"), ("a", "b", LONG)),
    ],
)
def test_masks_protobuf_string_wrapper_as_a_string(policy: FieldPolicy, changed: tuple[str, ...]) -> None:
    content, message = wrapped_message()

    found = mask_value(content, FRAMING + b"\0" + message.SerializeToString(), policy)[6:]

    read = type(message).FromString(found)
    assert (read.one.value, read.many[0].value, read.by_key["k"].value) == changed


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (field_policy("one", action=Action.REJECT), "one is not allowed"),
        (field_policy("any.mail"), "any is a google.protobuf.Any"),
        (field_policy("*.mail"), r"\* is a google.protobuf.Any"),
    ],
)
def test_masking_rejects_wrapped_or_packed_protobuf_fields(policy: FieldPolicy, words: str) -> None:
    content, message = wrapped_message()
    message.any.Pack(message)

    with pytest.raises(Unmaskable, match=words):
        mask_value(content, FRAMING + b"\0" + message.SerializeToString(), policy)


@pytest.mark.parametrize(
    ("name", "action", "body"),
    [("x", Action.REJECT, b"\x0a\x01s"), ("y", Action.REJECT, b"\x0a\x01s"), ("x", Action.MASK, b"\x0a\x01\xff")],
)
def test_masking_rejects_ambiguous_message_index_if_either_type_is_unmaskable(
    name: str, action: Action, body: bytes
) -> None:
    """[0,1] is I for Python's serializer, which counts the entry of the map, and L for Java's."""
    text = """syntax = "proto2";
    message O {
      map<string, string> m = 1;
      message I { optional string x = 1; }
      message L { optional string y = 1; }
    }"""
    content = indexed_protobuf_content(descriptor_set_of(OWN_NAME, text, {}))

    with pytest.raises(Unmaskable):
        mask_value(content, FRAMING + b"\x04\x00\x02" + body, field_policy(name, action=action))


JSON: dict[str, Any] = {
    "type": "object",
    "title": "Order",
    "properties": {
        "mail": {"type": ["string", "null"], "confluent:tags": ["PII"]},
        "lines": {"type": "array", "items": {"$ref": "#/definitions/line"}},
        "next": {"oneOf": [{"type": "null"}, {"$ref": "#"}]},
        "id": {"type": "string"},
    },
    "additionalProperties": {"type": "string", "confluent:tags": ["OTHER"]},
    "definitions": {
        "line": {"type": "object", "properties": {"sku": {"allOf": [{"type": "string", "confluent:tags": ["PII"]}]}}}
    },
}


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("PII", {"mail": LONG, "lines": [{"sku": LONG}], "next": {"mail": LONG, "id": "i"}, "id": "o", "x": "y"}),
        ("OTHER", {"mail": "a", "lines": [{"sku": "b"}], "next": {"mail": "c", "id": "i"}, "id": "o", "x": LONG}),
    ],
)
def test_tagged_fields_of_a_json_schema_are_masked(tag: str, expected: dict[str, Any]) -> None:
    order = {"mail": "a", "lines": [{"sku": "b"}], "next": {"mail": "c", "id": "i"}, "id": "o", "x": "y"}

    found = mask_value(
        json_schema_content(json.dumps(JSON)), FRAMING + json.dumps(order).encode(), field_policy(tags=(tag,))
    )

    assert json.loads(found[5:]) == expected


TAGGED = {"type": "string", "confluent:tags": ["PII"]}
AT_MAIL = {"properties": {"mail": TAGGED}}
REFERENCES = {"other.json": json.dumps({"definitions": {"a b": AT_MAIL}})}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": AT_MAIL}},
        {"$ref": "#/$defs/a%20b/anyOf/0", "$defs": {"a b": {"anyOf": [AT_MAIL]}}},
        {"$id": "http://here/a.json", "$ref": "http://here/a.json#/$defs/a", "$defs": {"a": AT_MAIL}},
        {"$ref": "other.json#/definitions/a%20b"},
        {"dependentSchemas": {"mail": AT_MAIL}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"mail": AT_MAIL}},
        {"not": {"not": AT_MAIL}},
        {"patternProperties": {"^m": TAGGED}},
    ],
    ids=str,
)
def test_finds_tags_at_any_location_in_a_schema(schema: dict[str, Any]) -> None:
    found = mask_value(
        json_schema_content(json.dumps(schema), REFERENCES), FRAMING + b'{"mail": "a"}', field_policy(tags=("PII",))
    )

    assert json.loads(found[5:]) == {"mail": LONG}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#mail", "$defs": {"a": {**AT_MAIL, "$anchor": "mail"}}},
        {"$dynamicRef": "#mail", "$defs": {"a": {**AT_MAIL, "$dynamicAnchor": "mail"}}},
        {"$ref": "#/$defs/b", "$defs": {"b": {"$id": "http://here/b", "$ref": "#/$defs/c", "$defs": {"c": AT_MAIL}}}},
        {"$ref": "http://here/b", "$defs": {"b": {"$id": "http://here/b", **AT_MAIL}}},
        {"anyOf": [AT_MAIL, *({"title": f"{i}"} for i in range(10_001))]},
    ],
    ids=lambda schema: str(schema)[:40],
)
def test_rejects_record_whose_schema_tags_cannot_be_found(schema: dict[str, Any]) -> None:
    content = json_schema_content(json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}))

    with pytest.raises(SchemaError, match="schema 7 cannot be used"):
        mask_value(content, FRAMING + b'{"mail": "a"}', field_policy(tags=("PII",)))


def test_masking_with_a_recursive_schema_leaks_no_objects() -> None:
    properties = {name: {"$ref": "#"} for name in "abcdefgh"}
    content = json_schema_content(json.dumps({"properties": {**properties, "mail": TAGGED}}))
    policy = field_policy(tags=("PII",))
    values = SchemaValues([policy], (tree_of([policy]),), FramedSchema(content))
    before = len(gc.get_objects())

    for i in range(8**4):
        path = ["abcdefgh"[i // 8**place % 8] for place in range(4)]
        text = "".join(f'{{"{name}":' for name in path) + '{"mail": "x"}' + "}" * len(path)
        found = values.masked(record(FRAMING + text.encode()), lambda _work: None, 1 << 24)
        assert found is not None
        assert b'"x"' not in found.data

    assert len(gc.get_objects()) - before < 1000


@pytest.mark.parametrize("squeeze", [lambda data: data[::-1], lambda data: b"longer than before " + data[::-1]])
def test_a_compressed_sensitive_value_is_rejected(squeeze: Callable[[bytes], bytes]) -> None:
    class CompressedSchema(FramedSchema):
        def _data(self, record: RuledRecord) -> bytes:
            return b'{"mail": "me"}'

    policy = field_policy("mail")
    values = SchemaValues([policy], (tree_of([policy]),), CompressedSchema(json_schema_content("{}")))

    with pytest.raises(Unmaskable, match="compressed by its serializer"):
        values.masked(record(squeeze(b'{"mail": "me"}')), lambda _work: None, 1 << 24)


@pytest.mark.parametrize("language", ["AVRO", "JSON"])
def test_masking_keeps_the_schema_id_before_the_value(language: str) -> None:
    pytest.importorskip("celpy", reason="cel-python is not installed: pip install 'confluent-kafka[rules]'")
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient  # noqa: PLC0415
    from confluent_kafka.schema_registry.avro import AvroSerializer  # noqa: PLC0415
    from confluent_kafka.schema_registry.json_schema import JSONSerializer  # noqa: PLC0415
    from confluent_kafka.serialization import MessageField, SerializationContext  # noqa: PLC0415

    client = SchemaRegistryClient.new_client({"url": "mock://"})
    text = json.dumps(AVRO if language == "AVRO" else JSON)
    client.register_schema("orders-value", Schema(text, language))
    conf = {"auto.register.schemas": False, "use.latest.version": True}
    is_avro = language == "AVRO"
    serializer = AvroSerializer(client, text, conf=conf) if is_avro else JSONSerializer(text, client, conf=conf)
    value = ORDER if is_avro else {"mail": "me@example.com", "id": "1"}
    data = serializer(value, SerializationContext("orders", MessageField.VALUE))
    content = serialized_avro_content(text) if is_avro else json_schema_content(text)

    found = mask_value(content, data, field_policy(tags=("PII",)))

    if is_avro:
        assert found == data[:5] + avro_bytes(AVRO, order_with_changes({"mail": LONG, "items": ITEMS}))
    else:
        assert (found[:5], json.loads(found[5:])) == (data[:5], {**value, "mail": LONG})
