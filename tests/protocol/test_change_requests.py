"""Requests that are parsed, and requests from which parts were removed, agree with the construct schema."""

import contextlib
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.change_requests import MOST_NAMED, MOST_READ, ChangeRequest, read_change, without
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.messages import topic_changes as messages
from sluicegate.protocol.messages.schema import MessageSchema, Value

CREATE, ALTER, INCREMENTAL = ApiKey.CREATE_TOPICS, ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS
SCHEMAS: dict[ApiKey, MessageSchema] = {
    CREATE: messages.CREATE_TOPICS_REQUEST,
    ALTER: messages.ALTER_CONFIGS_REQUEST,
    INCREMENTAL: messages.INCREMENTAL_ALTER_CONFIGS_REQUEST,
}
VERSIONS = [(api, version) for api, schema in SCHEMAS.items() for version in schema.versions]
PREFIX = "sluicegate."
TEXT = st.text("ab.é", max_size=10) | st.sampled_from(["sluicegate.mode", "retention.ms"])
TAGS = st.dictionaries(st.integers(0, 300), st.binary(max_size=5), max_size=2)


def go_on() -> None:
    pass


@st.composite
def requests(draw: Any, api: ApiKey, version: int) -> Value:
    def tagged(value: Value) -> Value:
        tags = draw(TAGS) if APIS[api].is_flexible(version) else {}
        return {**value, "unknown_tags": tags} if tags else value

    operation = {"config_operation": draw(st.integers(-128, 127))} if api is INCREMENTAL else {}
    items = []
    for name in draw(st.lists(TEXT, max_size=4)):
        settings = draw(st.lists(st.fixed_dictionaries({"name": TEXT, "value": st.none() | TEXT}), max_size=4))
        item: Value = {"configs": [tagged({**each, **operation}) for each in settings]}
        if api is CREATE:
            assignments = [
                tagged({"partition_index": n, "broker_ids": [1] * n}) for n in range(draw(st.integers(0, 3)))
            ]
            item |= {"name": name, "num_partitions": 1, "replication_factor": 2, "assignments": assignments}
        else:
            item |= {"resource_type": draw(st.sampled_from([2, 4, -1])), "resource_name": name}
        items.append(tagged(item))
    value: Value = {"topics" if api is CREATE else "resources": items}
    if api is CREATE:
        value["timeout_ms"] = 7
    if api is not CREATE or version >= 1:
        value["validate_only"] = draw(st.booleans())
    return tagged(value)


def items_of(value: Value) -> list[Value]:
    items: list[Value] = value["topics"] if "topics" in value else value["resources"]
    return items


def read(api: ApiKey, version: int, frame: bytes, body_at: int = 0) -> ChangeRequest:
    return read_change(api, version, frame, body_at, PREFIX, go_on)


@given(st.data(), st.sampled_from(VERSIONS))
def test_change_request_fields_equal_those_of_the_schema(data: st.DataObject, kind: tuple[ApiKey, int]) -> None:
    api, version = kind
    value = data.draw(requests(api, version))

    found = read(api, version, b"header" + SCHEMAS[api].build(value, version), 6)

    expected = [
        (
            each.get("resource_type", 2) & 0xFF,
            each["name"] if api is CREATE else each["resource_name"],
            any(setting["name"].startswith(PREFIX) for setting in each["configs"]),
            [(s["name"], s.get("config_operation", 0), s["value"]) for s in each["configs"]],
        )
        for each in items_of(value)
    ]
    assert [
        (item.kind, item.name, item.has_prefix, [(s.name, s.operation, s.value) for s in item.settings])
        for item in found.items
    ] == expected
    assert (found.is_validation, found.is_too_large) == (value.get("validate_only", False), False)


@given(st.data(), st.sampled_from(VERSIONS))
def test_removing_items_and_settings_leaves_the_rest_of_the_request_unchanged(
    data: st.DataObject, kind: tuple[ApiKey, int]
) -> None:
    api, version = kind
    value = data.draw(requests(api, version))
    frame = b"header" + SCHEMAS[api].build(value, version)
    items = items_of(value)
    dropped = data.draw(st.sets(st.integers(0, len(items) - 1)) if items else st.just(set[int]()))
    settings = {
        number: data.draw(st.sets(st.integers(0, len(item["configs"]) - 1)))
        for number, item in enumerate(items)
        if item["configs"]
    }
    is_validation = data.draw(st.booleans()) or value.get("validate_only", False)

    parts = without(frame, read(api, version, frame, 6), dropped, settings, is_validation, lambda: None)

    items[:] = [
        {**item, "configs": [s for place, s in enumerate(item["configs"]) if place not in settings.get(number, ())]}
        for number, item in enumerate(items)
        if number not in dropped
    ]
    if "validate_only" in value:
        value["validate_only"] = is_validation
    assert b"".join(parts) == b"header" + SCHEMAS[api].build(value, version)


@given(st.data(), st.sampled_from(VERSIONS))
def test_rejects_truncated_change_request(data: st.DataObject, kind: tuple[ApiKey, int]) -> None:
    api, version = kind
    body = SCHEMAS[api].build(data.draw(requests(api, version)), version)
    cut = body[: data.draw(st.integers(0, len(body) - 1))]

    with pytest.raises(MalformedMessage):
        read(api, version, cut)


@given(st.binary(max_size=80), st.sampled_from(VERSIONS))
def test_random_bytes_raise_only_malformed_message_errors(body: bytes, kind: tuple[ApiKey, int]) -> None:
    with contextlib.suppress(MalformedMessage):
        read(*kind, body)


def with_settings(api: ApiKey, count: int, name: str) -> Value:
    setting = {"name": name, "value": "1", "config_operation": 0}
    if api is not INCREMENTAL:
        del setting["config_operation"]
    if api is CREATE:
        topic = {
            "name": "t",
            "num_partitions": 1,
            "replication_factor": 1,
            "assignments": [],
            "configs": [setting] * count,
        }
        return {"topics": [topic], "timeout_ms": 1, "validate_only": True}
    resource = {"resource_type": 2, "resource_name": "t", "configs": [setting] * count}
    return {"resources": [resource], "validate_only": True}


@pytest.mark.parametrize("api", SCHEMAS)
@pytest.mark.parametrize("name", ["sluicegate.mode", "retention.ms"])
def test_large_change_request_is_read_without_all_its_settings(api: ApiKey, name: str) -> None:
    version = SCHEMAS[api].versions[-1]

    found = read(api, version, SCHEMAS[api].build(with_settings(api, MOST_READ, name), version))

    assert found.is_too_large
    assert found.is_validation
    assert [(item.name, item.has_prefix) for item in found.items] == [("t", name.startswith(PREFIX))]
    assert len(found.items[0].settings) <= MOST_READ


@pytest.mark.parametrize("api", SCHEMAS)
def test_rejects_change_request_with_too_many_elements(api: ApiKey) -> None:
    body = SCHEMAS[api].build(with_settings(api, MOST_NAMED, "k"), 0)

    with pytest.raises(MalformedMessage, match="elements"):
        read(api, 0, body)
    with pytest.raises(MalformedMessage):
        read(api, 0, struct.pack(">i", MOST_NAMED + 1) + bytes(30 * MOST_NAMED))
