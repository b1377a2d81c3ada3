"""Responses that are parsed or changed agree with the construct schema."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.change_responses import (
    ChangeError,
    encode_created_setting,
    encode_error,
    own_response,
    read_results,
    with_created_settings,
    with_results,
)
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.headers import build_response_header
from sluicegate.protocol.messages import topic_changes as messages
from sluicegate.protocol.messages.schema import MessageSchema, Value

CREATE, DELETE = ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS
SCHEMAS: dict[ApiKey, MessageSchema] = {
    CREATE: messages.CREATE_TOPICS_RESPONSE,
    DELETE: messages.DELETE_TOPICS_RESPONSE,
    ApiKey.ALTER_CONFIGS: messages.ALTER_CONFIGS_RESPONSE,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: messages.INCREMENTAL_ALTER_CONFIGS_RESPONSE,
}
VERSIONS = [(api, version) for api, schema in SCHEMAS.items() for version in schema.versions]
WITH_ERRORS = [(api, version) for api, version in VERSIONS if api is not DELETE]
TEXT = st.text("ab.é", max_size=10)
# In a created topic, tag 0 is the error for its settings.
TAGS = st.dictionaries(st.integers(1, 300), st.binary(max_size=5), max_size=2)
NO_ID = bytes(16)


def go_on() -> None:
    pass


def key_of(api: ApiKey) -> str:
    return "topics" if api is CREATE else "responses"


@st.composite
def responses(draw: Any, api: ApiKey, version: int) -> Value:
    def tagged(value: Value) -> Value:
        tags = draw(TAGS) if APIS[api].is_flexible(version) else {}
        return {**value, "unknown_tags": tags} if tags else value

    def result() -> Value:
        code = draw(st.sampled_from([0, 0, 3, 29, -1]))
        if api not in (CREATE, DELETE):
            kind, name = draw(st.sampled_from([2, 4])), draw(TEXT)
            return {"error_code": code, "error_message": None, "resource_type": kind, "resource_name": name}
        value: Value = {"name": draw(TEXT), "error_code": code}
        if api is DELETE and version >= 6 and draw(st.booleans()):
            value["name"] = None
        if version >= (7 if api is CREATE else 6):
            value["topic_id"] = draw(st.sampled_from([NO_ID, b"i" * 16]))
        if version >= (1 if api is CREATE else 5):
            value["error_message"] = draw(st.none() | TEXT)
        if api is CREATE and version >= 5:
            setting = {
                "name": TEXT,
                "value": st.none() | TEXT,
                "read_only": st.booleans(),
                "is_sensitive": st.booleans(),
            }
            setting["config_source"] = st.integers(0, 8)
            configs = draw(st.none() | st.lists(st.fixed_dictionaries(setting), max_size=3))
            value |= {"num_partitions": 1, "replication_factor": 1, "configs": configs}
            value["configs"] = configs if configs is None else [tagged(each) for each in configs]
        return value

    value: Value = {key_of(api): [tagged(result()) for _ in range(draw(st.integers(0, 4)))]}
    if version >= {CREATE: 2, DELETE: 1}.get(api, 0):
        value["throttle_time_ms"] = draw(st.integers(0, 9))
    return tagged(value)


@given(st.data(), st.sampled_from(VERSIONS))
def test_change_response_results_equal_those_of_the_schema(data: st.DataObject, kind: tuple[ApiKey, int]) -> None:
    api, version = kind
    value = data.draw(responses(api, version))
    frame = b"head" + SCHEMAS[api].build(value, version)

    found = read_results(api, version, frame, 4, go_on)

    expected = [
        (
            each.get("resource_type", 2),
            each["resource_name"] if "resource_name" in each else each["name"],
            None if each.get("topic_id", NO_ID) == NO_ID else each["topic_id"],
            each["error_code"],
        )
        for each in value[key_of(api)]
    ]
    assert [(each.kind, each.name, each.topic_id, each.code) for each in found.results] == expected


@given(st.data(), st.sampled_from(VERSIONS))
def test_replacing_results_leaves_the_rest_of_the_response_unchanged(
    data: st.DataObject, kind: tuple[ApiKey, int]
) -> None:
    api, version = kind
    value = data.draw(responses(api, version))
    surplus = b"" if APIS[api].is_flexible(version) else b"more"
    frame = b"head" + SCHEMAS[api].build(value, version) + surplus
    read = read_results(api, version, frame, 4, go_on)

    parts = with_results(frame, read, [frame[each.start : each.end] for each in reversed(read.results)])

    value[key_of(api)].reverse()
    assert b"".join(parts) == b"head" + SCHEMAS[api].build(value, version) + surplus


@given(st.data(), st.sampled_from(VERSIONS))
def test_rejects_truncated_change_response(data: st.DataObject, kind: tuple[ApiKey, int]) -> None:
    api, version = kind
    value = data.draw(responses(api, version))
    value.pop("unknown_tags", None)
    body = SCHEMAS[api].build(value, version)
    last = len(body) - (1 if APIS[api].is_flexible(version) else 0)  # the response's tagged fields are not read

    with pytest.raises(MalformedMessage):
        read_results(api, version, body[: data.draw(st.integers(0, last - 1))], 0, go_on)


@given(st.binary(max_size=80), st.sampled_from(VERSIONS))
def test_random_bytes_raise_only_malformed_message_errors(body: bytes, kind: tuple[ApiKey, int]) -> None:
    with contextlib.suppress(MalformedMessage):
        read_results(*kind, body, 0, go_on)


@pytest.mark.parametrize(("api", "version"), WITH_ERRORS)
@pytest.mark.parametrize("message", [None, "not now"])
def test_generated_error_response_equals_that_built_by_the_schema(
    api: ApiKey, version: int, message: str | None
) -> None:
    kind = 2 if api is CREATE else 4
    result = encode_error(api, version, kind, "orders", ChangeError(40, message))

    frame = b"".join(own_response(api, version, 77, [result, result]))

    value: Value = {"error_code": 40, "error_message": message}
    value |= {"name": "orders"} if api is CREATE else {"resource_type": 4, "resource_name": "orders"}
    body = SCHEMAS[api].build({key_of(api): [value, value], "throttle_time_ms": 0}, version)
    assert frame == build_response_header(77, APIS[api].response_header_version(version)) + body


@given(st.data(), st.sampled_from([5, 6, 7]))
def test_adds_settings_to_created_topics_that_list_settings(data: st.DataObject, version: int) -> None:
    value = data.draw(responses(CREATE, version))
    frame = messages.CREATE_TOPICS_RESPONSE.build(value, version)
    read = read_results(CREATE, version, frame, 0, go_on)
    settings = [encode_created_setting("sluicegate.mode", "observe", 1), encode_created_setting("k", None, 5)]

    results = [b"".join(with_created_settings(frame, each, read.flexible, settings)) for each in read.results]

    added = {"read_only": False, "is_sensitive": False}
    for each in value["topics"]:
        if each["configs"]:
            each["configs"].append({"name": "sluicegate.mode", "value": "observe", "config_source": 1, **added})
            each["configs"].append({"name": "k", "value": None, "config_source": 5, **added})
    assert b"".join(with_results(frame, read, results)) == messages.CREATE_TOPICS_RESPONSE.build(value, version)


@pytest.mark.parametrize("version", range(5))
def test_adds_no_settings_to_created_topic_in_older_versions(version: int) -> None:
    value = {"topics": [{"name": "t", "error_code": 0, "error_message": None}], "throttle_time_ms": 0}
    frame = messages.CREATE_TOPICS_RESPONSE.build(value, version)
    (result,) = read_results(CREATE, version, frame, 0, go_on).results

    assert b"".join(with_created_settings(frame, result, False, [b"x"])) == frame[result.start : result.end]
