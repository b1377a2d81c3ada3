"""DescribeConfigs requests, and responses with added settings, agree with the construct schema."""

import contextlib
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.protocol import described_settings
from sluicegate.protocol.described_settings import (
    MOST_DESCRIBED,
    DescribedSetting,
    Describing,
    encode_setting,
    read_describing,
    with_settings,
)
from sluicegate.protocol.errors import MalformedMessage, SchemaMisuse
from sluicegate.protocol.messages.cluster import DESCRIBE_CONFIGS_REQUEST, DESCRIBE_CONFIGS_RESPONSE
from sluicegate.protocol.messages.schema import Value

VERSIONS = range(5)
PREFIX = "sluicegate."
TEXT = st.text("ab.é", max_size=12)
TAGS = st.dictionaries(st.integers(0, 300), st.binary(max_size=5), max_size=2)
TOPICS = st.sampled_from(["orders", "payments", "other", ""])
NAMES = st.sampled_from(["sluicegate.mode", "sluicegate.x", "retention.ms", ""])


def tagged(value: Value, tags: dict[int, bytes], version: int) -> Value:
    return {**value, "unknown_tags": tags} if version >= 4 and tags else value


@st.composite
def requests(draw: Any, version: int) -> Value:
    resource = st.fixed_dictionaries(
        {
            "resource_type": st.sampled_from([2, 4, 8]),
            "resource_name": TOPICS,
            "configuration_keys": st.none() | st.lists(NAMES, max_size=3),
        }
    )
    resources = [tagged(each, draw(TAGS), version) for each in draw(st.lists(resource, max_size=4))]
    value = {"resources": resources}
    if version >= 1:
        value["include_synonyms"] = draw(st.booleans())
    if version >= 3:
        value["include_documentation"] = draw(st.booleans())
    return tagged(value, draw(TAGS), version)


@st.composite
def responses(draw: Any, version: int) -> Value:
    synonym = st.fixed_dictionaries({"name": TEXT, "value": st.none() | TEXT, "source": st.integers(0, 8)})
    setting = {"name": TEXT, "value": st.none() | TEXT, "read_only": st.booleans(), "is_sensitive": st.booleans()}
    if version == 0:
        setting["is_default"] = st.booleans()
    else:
        setting |= {"config_source": st.integers(0, 8), "synonyms": st.lists(synonym, max_size=2)}
    if version >= 3:
        setting |= {"config_type": st.integers(0, 9), "documentation": st.none() | TEXT}
    result = st.fixed_dictionaries(
        {
            "error_code": st.sampled_from([0, 0, 3, 29, -1]),
            "error_message": st.none() | TEXT,
            "resource_type": st.sampled_from([2, 2, 4]),
            "resource_name": TOPICS,
            "configs": st.lists(st.fixed_dictionaries(setting), max_size=3),
        }
    )
    results = [tagged(each, draw(TAGS), version) for each in draw(st.lists(result, max_size=4))]
    for each in results:
        each["configs"] = [tagged(config, draw(TAGS), version) for config in each["configs"]]
    return tagged({"throttle_time_ms": draw(st.integers(0, 9)), "results": results}, draw(TAGS), version)


def go_on() -> None:
    pass


def read(body: bytes, version: int) -> Describing:
    return read_describing(body, version, 0, {"orders", "payments"}.__contains__, PREFIX, go_on)


@given(st.data(), st.sampled_from(VERSIONS))
def test_describe_configs_request_fields_equal_those_of_the_schema(data: st.DataObject, version: int) -> None:
    value = data.draw(requests(version))

    found = read(DESCRIBE_CONFIGS_REQUEST.build(value, version), version)

    expected: dict[str, list[frozenset[str] | None]] = {}
    for each in value["resources"]:
        if each["resource_type"] == 2 and each["resource_name"] in ("orders", "payments"):
            keys = each["configuration_keys"]
            ours = frozenset(key for key in keys if key.startswith(PREFIX)) if keys else None
            expected.setdefault(each["resource_name"], []).append(ours)
    synonyms, documentation = value.get("include_synonyms", False), value.get("include_documentation", False)
    assert found == Describing(expected, synonyms, documentation)


@given(st.data(), st.sampled_from(VERSIONS))
def test_rejects_truncated_describe_configs_request(data: st.DataObject, version: int) -> None:
    body = DESCRIBE_CONFIGS_REQUEST.build(data.draw(requests(version)), version)
    cut = body[: data.draw(st.integers(0, len(body) - 1))]

    with pytest.raises(MalformedMessage):
        read(cut, version)


@given(st.binary(max_size=80), st.sampled_from(VERSIONS))
def test_random_bytes_raise_only_malformed_message_errors(body: bytes, version: int) -> None:
    for step in (lambda: read(body, version), lambda: with_settings(body, version, 0, lambda _: [b"x"], go_on)):
        with contextlib.suppress(MalformedMessage):
            step()


@pytest.mark.parametrize("version", VERSIONS)
def test_rejects_describe_configs_request_with_too_many_elements(version: int) -> None:
    resource = {"resource_type": 2, "resource_name": "orders", "configuration_keys": ["k"] * (MOST_DESCRIBED + 1)}
    keys = DESCRIBE_CONFIGS_REQUEST.build(
        {"resources": [resource], "include_synonyms": False, "include_documentation": False}, version
    )
    count = struct.pack(">i", MOST_DESCRIBED + 1) if version < 4 else b"\xc2\x9a\x0c"
    resources = count + bytes(4 * MOST_DESCRIBED)

    for body in (keys, keys.replace(b"orders", b"nobody"), resources):
        with pytest.raises(MalformedMessage, match=r"elements|most"):
            read(body, version)


def setting_in(setting: DescribedSetting, version: int, synonyms: bool, documentation: bool) -> Value:
    """Return a setting as a schema's value."""
    source = 5 if setting.value is None else 1
    value: Value = {"name": setting.name, "value": setting.value, "read_only": False, "is_sensitive": False}
    if version == 0:
        return {**value, "is_default": False}
    listed = [{"name": setting.name, "value": setting.value, "source": source}]
    value |= {"config_source": source, "synonyms": listed if synonyms and setting.value is not None else []}
    if version >= 3:
        value |= {"config_type": setting.type, "documentation": setting.documentation if documentation else None}
    return value


SETTING = st.builds(DescribedSetting, TEXT, st.none() | TEXT, st.integers(0, 9), st.none() | TEXT)


@given(st.data(), st.sampled_from(VERSIONS), st.lists(SETTING, max_size=3), st.booleans(), st.booleans())
def test_adds_settings_only_to_described_topics_without_an_error(
    data: st.DataObject, version: int, settings: list[DescribedSetting], synonyms: bool, documentation: bool
) -> None:
    value = data.draw(responses(version))
    body = DESCRIBE_CONFIGS_RESPONSE.build(value, version)
    encoded = [encode_setting(each, version, synonyms, documentation) for each in settings]
    surplus = data.draw(st.binary(max_size=2)) if version < 4 else b""

    parts = with_settings(
        b"head" + body + surplus, version, 4, lambda topic: encoded if topic == "orders" else [], go_on
    )

    for each in value["results"]:
        if (each["error_code"], each["resource_type"], each["resource_name"]) == (0, 2, "orders"):
            each["configs"] = each["configs"] + [setting_in(s, version, synonyms, documentation) for s in settings]
    assert b"".join(parts) == b"head" + DESCRIBE_CONFIGS_RESPONSE.build(value, version) + surplus


@given(st.data(), st.sampled_from(VERSIONS))
def test_rejects_truncated_describe_configs_response(data: st.DataObject, version: int) -> None:
    body = DESCRIBE_CONFIGS_RESPONSE.build(data.draw(responses(version)), version)
    cut = body[: data.draw(st.integers(0, len(body) - 1))]

    with pytest.raises(MalformedMessage):
        with_settings(cut, version, 0, lambda _: [b"x"], go_on)


@pytest.mark.parametrize("version", VERSIONS)
def test_described_topic_gets_an_error_if_added_settings_exceed_the_limit(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(described_settings, "MOST_ADDED_BYTES", 100)
    result = {"error_code": 0, "error_message": None, "resource_type": 2, "configs": []}
    topics = [{**result, "resource_name": name} for name in ("small", "large", "plain")]
    body = DESCRIBE_CONFIGS_RESPONSE.build({"throttle_time_ms": 0, "results": topics}, version)
    setting = encode_setting(DescribedSetting("sluicegate.owner", "o" * 60, 2, None), version, False, False)

    parts = with_settings(body, version, 0, lambda topic: [setting] if topic != "plain" else [], go_on)

    results = DESCRIBE_CONFIGS_RESPONSE.parse(b"".join(parts), version)["results"]
    assert [(each["error_code"], len(each["configs"])) for each in results] == [(0, 1), (-1, 0), (0, 0)]
    assert "describe fewer topics" in results[1]["error_message"]


def test_rejects_setting_value_too_long_for_a_protocol_string() -> None:
    with pytest.raises(SchemaMisuse):
        encode_setting(DescribedSetting("k", "v" * 32_768, 2, None), 4, False, False)
