"""Parts of a document that have no effect are reported with the reason, and malformed documents are errors."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sluicegate.config.contracts.contract_file import contract_in_text, topics_in
from tests.config.contracts.asyncapi.documents import SHOP_2, SHOP_3, channel_with, load_document
from tests.config.contracts.asyncapi.test_verdicts import AVRO, AVRO_TYPE, PROTO, PROTO_TYPE

AVRO_PAYLOAD = f'{{schemaFormat: "{AVRO_TYPE}", schema: {json.dumps(AVRO)}}}'
BAD: list[Any] = [
    *(None, True, 5, "text", [], {}, [{}], {"$ref": "#/x"}, {"type": ["a", {}]}, {"enum": [{}], "type": [[]]}),
    {"enum": 5, "minLength": "x", "pattern": 4, "format": [], "required": [{}], "protocol": [], "name": []},
]
OPERATION = "operations: {o: {action: send, channel: {$ref: '#/channels/c'}"
TWO_MESSAGES = json.dumps(PROTO + "message Other {}\n")


def unchecked_in(folder: Path, document: str, text: str | None = None) -> list[str]:
    loaded = load_document(folder, document) if text is None else load_document(folder, document, text)
    return [str(each) for each in loaded.source.contracts["t"].unchecked]


@pytest.mark.parametrize(
    ("payload", "more", "words"),
    [
        ("{}", "contentType: text/plain", "payload of message m: data of contentType text/plain are not read"),
        ("{}", "contentType: avro/binary", "payload of message m: set registry in the item of contracts"),
        (AVRO_PAYLOAD, "contentType: application/json", "the schema is avro, but contentType"),
        (AVRO_PAYLOAD, "contentType: avro/json", "data of contentType avro/json are not read"),
        ("{schemaFormat: application/raml+yaml;version=1.0, schema: x}", "", "raml+yaml are not supported"),
        ('{schemaFormat: "application/schema+json;version=9", schema: {}}', "", "JSON Schema of version 9"),
        (f'{{schemaFormat: "{PROTO_TYPE}", schema: {TWO_MESSAGES}}}', "",
         "the Protobuf source has 2 messages (shop.Order, shop.Other); none is named m"),
        ("{discriminator: kind}", "", "discriminator kind: it does not choose the schema"),
        (AVRO_PAYLOAD, "bindings: {kafka: {schemaIdLocation: payload, schemaIdPayloadEncoding: apicurio-legacy}}",
         "schema ids encoded as apicurio-legacy need registry"),
        ("{}", "headers: {additionalProperties: false}",
         "additionalProperties of the headers of message m: producers and agents may add headers"),
        ("{}", "headers: {oneOf: [{}]}", "oneOf of the headers of message m: only properties, required and allOf"),
        ("{}", "headers: {properties: {n: {type: integer, minimum: 1}}}", "minimum of header n of message m"),
        ("{}", "headers: {properties: {n: {type: object}}}", "type object of header n of message m"),
        ("{}", "headers: {properties: {n: {type: string, format: email}}}", "format email of header n of message m"),
        ("{}", "headers: {properties: {n: {type: string, pattern: '(?=a)'}}}", "pattern of header n of message m: "),
        ("{}", "headers: {properties: {n: {type: string, maxLength: 5000}}}", "maxLength of header n of message m"),
        ("{}", f"headers: {AVRO_PAYLOAD}", "headers of message m: schemas in application/vnd.apache.avro"),
        ("{}", "bindings: {kafka: {key: {type: integer}}}", "type of the key of message m: serializers"),
        ("{}", "bindings: {kafka: {key: {type: string, format: email}}}", "format email of the key of message m"),
        ("{}", "correlationId: {location: $message.header#/id}", "correlationId of message m"),
    ],
)  # fmt: skip
def test_reports_unchecked_message_keywords_with_the_reason(
    payload: str, more: str, words: str, tmp_path: Path
) -> None:
    unchecked = unchecked_in(tmp_path, channel_with(payload, more))

    assert any(words in each for each in unchecked), unchecked


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("    bindings: {kafka: {partitions: 3, replicas: 2, topicConfiguration: {retention.ms: 5}}}\n",
         ["partitions of channel c", "replicas of channel c", "topicConfiguration of channel c"]),
        (f"{OPERATION}, reply: {{}}, bindings: {{kafka: {{groupId: {{}}}}}}}}}}\n",
         ["groupId of an operation", "reply of an operation"]),
        (f"{OPERATION}, traits: [{{bindings: {{kafka: {{clientId: {{}}}}}}}}]}}}}\n",
         ["clientId of an operation"]),
    ],
)  # fmt: skip
def test_reports_unchecked_bindings(more: str, words: list[str], tmp_path: Path) -> None:
    unchecked = unchecked_in(tmp_path, channel_with("{}") + more)

    assert [each.partition(":")[0] for each in unchecked] == words


@pytest.mark.parametrize(
    ("trait", "expected"),
    [
        ("{type: string, pattern: a}", ["header n of message m"]),
        ("{type: string, minLength: 1}", []),
    ],
)
def test_reports_trait_header_that_the_message_overrides(trait: str, expected: list[str], tmp_path: Path) -> None:
    own = "headers: {properties: {n: {type: string, minLength: 1}}}"
    document = channel_with("{}", f"{own}\n        traits: [{{headers: {{properties: {{n: {trait}}}}}}}]")

    assert [each.partition(": ")[0] for each in unchecked_in(tmp_path, document)] == expected


def test_message_required_headers_override_those_of_a_trait(tmp_path: Path) -> None:
    document = channel_with("{}", "headers: {required: []}\n        traits: [{headers: {required: [a]}}]")

    loaded = load_document(tmp_path, document)

    assert [rule.name for rule in loaded.config.topics[0].rules or ()] == ["contract.payload"]


def test_does_not_check_messages_with_different_json_schema_drafts(tmp_path: Path) -> None:
    old, new = (
        f'{{schemaFormat: "application/schema+json;version={each}", schema: {{minimum: 1}}}}'
        for each in ("draft-04", "2020-12")
    )
    document = channel_with(old).replace("      m:\n", f"      n: {{payload: {new}}}\n      m:\n")

    unchecked = unchecked_in(tmp_path, document)

    assert [each.partition(": ")[0] for each in unchecked] == ["payload of message n", "payload of message m"]


def test_contract_has_no_registry_if_no_rule_uses_one(tmp_path: Path) -> None:
    text = "registries: {main: {url: 'http://h'}}\ncontracts: [{path: '*.asyncapi.yaml', registry: main}]\n"
    document = channel_with("{properties: {registry: {type: string}}}", "headers: {required: [registry]}")

    assert load_document(tmp_path, document, text).source.contracts["t"].registry is None


def test_does_not_check_messages_of_several_formats(tmp_path: Path) -> None:
    document = channel_with("{}").replace("      m:\n", f"      n: {{payload: {AVRO_PAYLOAD}}}\n      m:\n")

    unchecked = unchecked_in(tmp_path, document)

    assert [each.partition(": ")[0] for each in unchecked] == ["payload of message n", "payload of message m"]


def test_checks_only_headers_that_all_messages_of_a_channel_share(tmp_path: Path) -> None:
    first = "headers: {required: [a, b], properties: {c: {type: string, minLength: 2}}}"
    second = "headers: {required: [a], properties: {c: {type: string, minLength: 3}}}"
    key = "bindings: {kafka: {key: {type: string, minLength: 1}}}"
    document = channel_with("{}", f"{first}\n        {key}")
    document = document.replace("      m:\n", f"      n: {{payload: {{}}, {second}}}\n      m:\n")

    loaded = load_document(tmp_path, document)

    named = {rule.name: rule for rule in loaded.config.topics[0].rules or ()}
    assert set(named) == {"contract.payload", "contract.headers"}
    headers = named["contract.headers"].headers
    assert headers is not None
    assert (headers.required, headers.patterns) == (("a",), {})
    what = {each.what for each in loaded.source.contracts["t"].unchecked}
    assert {"header b of message m", "header c of message m", "header c of message n", "key of message m"} <= what


def test_avro_and_protobuf_messages_use_the_schemas_of_a_configured_registry(tmp_path: Path) -> None:
    text = "registries: {main: {url: 'http://h'}}\ncontracts: [{path: '*.asyncapi.yaml', registry: main}]\n"
    binding = "bindings: {kafka: {schemaLookupStrategy: RecordNameStrategy}}"
    remote = f'{{schemaFormat: "{AVRO_TYPE}", schema: {{$ref: "https://example.com/order.avsc"}}}}'

    loaded = load_document(tmp_path, channel_with(remote, binding), text)

    (rule,) = loaded.config.topics[0].rules or ()
    schema = rule.value.schema_ if rule.value is not None else None
    assert schema is not None
    assert (schema.registry, schema.format, schema.subject, schema.json_schema) == ("main", "avro", "record", None)
    contract = loaded.source.contracts["t"]
    assert contract.registry == "main"
    assert [each.why for each in contract.unchecked] == ["records follow the schemas of the registry main"]

    loaded = load_document(tmp_path, channel_with("{type: object, required: [a]}", "contentType: avro/binary"), text)
    (rule,) = loaded.config.topics[0].rules or ()
    schema = rule.value.schema_ if rule.value is not None else None
    assert schema is not None
    assert (schema.registry, schema.format) == ("main", "avro")
    assert json.loads(schema.json_schema or "")["required"] == ["a"]


def test_contract_item_mode_applies_to_all_its_rules(tmp_path: Path) -> None:
    loaded = load_document(tmp_path, SHOP_3, "contracts: [{path: '*.asyncapi.yaml', mode: observe}]\n")

    assert {rule.mode for rule in loaded.config.topics[0].rules or ()} == {"observe"}


def places_in(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container with each of its keys or positions."""
    for part in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, part
        yield from places_in(value[part])


@pytest.mark.parametrize("document", [SHOP_2, SHOP_3], ids=["2.6", "3.0"])
def test_mutated_document_is_accepted_or_rejected_with_its_location(document: str) -> None:
    draw = random.Random(68)
    count = len(list(places_in(yaml.safe_load(document))))
    refused = 0
    for at in range(count):
        data = yaml.safe_load(document)
        container, part = list(places_in(data))[at]
        container[part] = draw.choice(BAD)
        source = contract_in_text(json.dumps(data), "shop")
        topics_in(source, Path("shop"), None, "reject")
        refused += bool(source.problems)
        assert all(str(problem).startswith("shop:") for problem in source.problems), (part, container[part])
    assert 0 < refused < count
