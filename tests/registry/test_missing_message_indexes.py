"""Protobuf values of kafkajs's serializer contain no message indexes; those of Confluent's serializers do.

The values were written by `ProtoSchema` and `wireEncoder` of @kafkajs/confluent-schema-registry 3.9.0 with FILE and the
id 7: `encode(7, new ProtoSchema({schema: FILE}).toBuffer(value))`.
"""

from typing import Any, Literal

import pytest

from sluicegate.config.registries import Registry
from sluicegate.proxy.registry.http import JsonResponse
from sluicegate.proxy.registry.registries import api_of, framing_of
from sluicegate.proxy.registry.schema_registry import SchemaRegistry
from sluicegate.validation.rules.rule import Side
from sluicegate.validation.rules.schemas.registered_schema import HasRegisteredSchema, SubjectName
from sluicegate.validation.rules.schemas.schema_expression import TrueOfSchema
from sluicegate.validation.sensitive.paths import Action, FieldPolicy, tree_of
from sluicegate.validation.sensitive.schema_values import SchemaValues
from tests.registry.test_protobuf_serializers import classes_of
from tests.registry.test_schema_registry import ScriptedRegistry
from tests.validation.rules.records import record

FILE = (
    'syntax = "proto3"; package shop; message Order { string id = 1; int64 count = 2; '
    "message Line { string sku = 1; } repeated Line lines = 3; } message Other { bytes raw = 1; }"
)
WRITTEN = {
    "two fields": "00000000070a036f2d311007",
    "nothing": "0000000007",
    "a list": "00000000071a030a0161",
    "a number": "00000000071003",
}
NO_ORDER = b"\0\0\0\0\7" + b"\x0a\x03o"
Indexes = Literal["required", "optional"]


def _rule(indexes: Indexes) -> HasRegisteredSchema:
    section = Registry(url="http://127.0.0.1:8081", message_indexes=indexes)
    http = ScriptedRegistry()
    http.answers["/schemas/ids/7"] = JsonResponse(200, {"schemaType": "PROTOBUF", "schema": FILE})
    schemas = SchemaRegistry("main", http, 60, 30, api=api_of(section), framing=framing_of(section))
    return HasRegisteredSchema(Side.VALUE, schemas, None, SubjectName.ANY)


def _confluent(message: str, indexes: bytes, **fields: Any) -> bytes:
    data: bytes = classes_of(FILE)(message)(**fields).SerializeToString()
    return b"\0\0\0\0\7" + indexes + data


@pytest.mark.parametrize("written", WRITTEN)
def test_protobuf_without_message_indexes_is_read_as_first_message_if_optional(written: str) -> None:
    value = record(bytes.fromhex(WRITTEN[written]))

    assert _rule("optional").fault(value) is None
    words = str(_rule("required").fault(value))
    assert "it can be read as the first message without indexes, as kafkajs's serializer writes it" in words
    assert "message_indexes: optional" in words


@pytest.mark.parametrize("indexes", ["required", "optional"])
def test_optional_message_indexes_select_the_message_if_present(indexes: Indexes) -> None:
    for value in (
        _confluent("shop.Order", b"\0", id="a"),
        _confluent("shop.Order.Line", b"\4\0\0", sku="a"),
        _confluent("shop.Other", b"\2\2", raw=b"\xff"),
    ):
        assert _rule(indexes).fault(record(value)) is None
    assert "cannot be read as shop.Order" in str(_rule(indexes).fault(record(b"\0\0\0\0\7\0" + b"\x0a\xff")))


def test_data_that_lacks_more_than_message_indexes_has_no_hint() -> None:
    words = str(_rule("required").fault(record(NO_ORDER)))

    assert words.startswith(
        "the value does not match its Protobuf schema: the message indexes before it do not select a message"
    )
    assert "kafkajs" not in words
    assert "cannot be read as shop.Order" in str(_rule("optional").fault(record(NO_ORDER)))


def test_expressions_and_masking_support_protobuf_without_message_indexes() -> None:
    value = bytes.fromhex(WRITTEN["two fields"])
    policy = FieldPolicy("pii", (("id",),), Action.MASK, "***")

    for expression, is_true in (("value.count == 7", True), ("value.count == 8", False)):
        assert (TrueOfSchema(expression, _rule("optional")).fault(record(value)) is None) is is_true
    masked = SchemaValues([policy], (tree_of([policy]),), _rule("optional")).masked(record(value), lambda _: None, 1000)
    assert masked is not None
    assert masked.data == b"\0\0\0\0\7" + classes_of(FILE)("shop.Order")(id="***", count=7).SerializeToString()
