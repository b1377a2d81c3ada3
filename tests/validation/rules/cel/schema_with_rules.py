"""Builds schemas with rules inside them, and compares the decisions of Confluent's serializers with the rule's."""

import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from copy import deepcopy
from time import time_ns
from typing import Any

import pytest

from sluicegate.proxy.registry.http import JsonResponse
from sluicegate.proxy.registry.schema_registry import SchemaRegistry
from sluicegate.proxy.rules_process.protoc import descriptor_set_of
from sluicegate.validation.rules.rule import Side
from sluicegate.validation.rules.schemas.registered_schema import HasRegisteredSchema, SubjectName
from sluicegate.validation.rules.schemas.rules_inside_schemas import MeetsRulesInside
from tests.registry.test_schema_registry import ScriptedRegistry

pytest.importorskip("celpy", reason="cel-python is not installed: pip install 'confluent-kafka[rules]'")

from confluent_kafka.schema_registry import Rule, RuleSet, Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.confluent import meta_pb2
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import SerializationError
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass

from tests.validation.rules.cel.test_field_conditions import AVRO, CONTEXT, JSON, PROTOBUF


class SchemaWithRules:
    """One schema with rules at given places: Confluent's serializers with and without these rules, and the proxy's
    rule."""

    def __init__(
        self,
        language: str,
        rules: dict[int, list[dict[str, str]]],
        transforms: Sequence[Rule] = (),
        text: str = "",
    ) -> None:
        """`transforms`: rules that the registry stores with the schema. `text`: another schema in Avro or JSON."""
        self.language = language
        self._rule_set = RuleSet([], list(transforms))
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
            schema = json.loads(text) if text else deepcopy(AVRO if language == "AVRO" else JSON)
            places = list(_avro_places(schema) if language == "AVRO" else _json_places(schema))
            for at, given in rules.items():
                places[at % len(places)]["confluent:rules"] = given
            self.text = json.dumps(schema)
        self._serializers = {
            order: self._serializer(order) for order in ("DISABLED", "BEFORE_DOMAIN_RULES", "AFTER_DOMAIN_RULES")
        }

    def _serializer(self, execution: str) -> Any:
        client = SchemaRegistryClient.new_client({"url": "mock://"})
        client.register_schema("orders-value", Schema(self.text, self.language, [], rule_set=self._rule_set))
        conf = {"auto.register.schemas": False, "use.latest.version": True, "validation.rules.execution": execution}
        if self.language == "AVRO":
            return AvroSerializer(client, self.text, conf=conf)
        if self.language == "JSON":
            return JSONSerializer(self.text, client, conf=conf)
        return ProtobufSerializer(self.new, client, conf | {"use.deprecated.format": False})

    def written(self, document: dict[str, Any], order: str = "AFTER_DOMAIN_RULES") -> tuple[bytes, str]:
        """Return what the serializer writes without the rules, and why it does not with them; empty if it does."""
        given = {name: each for name, each in document.items() if each is not None or self.language != "PROTOBUF"}
        value = ParseDict(given, self.new()) if self.language == "PROTOBUF" else given
        data = bytes(self._serializers["DISABLED"](deepcopy(value), CONTEXT))
        try:
            self._serializers[order](deepcopy(value), CONTEXT)
        except (SerializationError, TypeError) as error:  # its runtime raises TypeError for `exists` over a number
            return data, str(error)
        return data, ""

    def rule(self, **more: Any) -> MeetsRulesInside:
        """Return our rule. `more`: what the registry has beside the schema."""
        http = ScriptedRegistry()
        found = {"schemaType": self.language, "schema": self.text, "references": []}
        if self._rule_set.domain_rules:
            found["ruleSet"] = self._rule_set.to_dict()
        http.answers["/schemas/ids/1"] = JsonResponse(200, found | more)
        schemas = HasRegisteredSchema(Side.VALUE, SchemaRegistry("main", http, 60, 30), None, SubjectName.ANY)
        return MeetsRulesInside(schemas, Side.VALUE, time_ns)


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
