"""Topics with sluicegate's settings are described through a whole session, in each version."""

from typing import Any

import pytest

from sluicegate.config.setting_keys import SETTING_KEYS
from sluicegate.protocol.api import ApiKey
from tests.proxy.session.playbook import Playbook
from tests.proxy.session.settings.scene import CLIENTS, MODE, OWNER, Scene

DESCRIBE = ApiKey.DESCRIBE_CONFIGS
VERSIONS = pytest.mark.parametrize("version", range(5))
TOPIC = 2


def description(*resources: tuple[str, list[str] | None], synonyms: bool = False, docs: bool = False) -> dict[str, Any]:
    named = [{"resource_type": TOPIC, "resource_name": name, "configuration_keys": keys} for name, keys in resources]
    return {"resources": named, "include_synonyms": synonyms, "include_documentation": docs}


RETENTION = {
    "name": "retention.ms",
    "value": "1",
    "read_only": False,
    "is_default": False,
    "config_source": 1,
    "is_sensitive": False,
    "synonyms": [],
    "config_type": 5,
    "documentation": None,
}


def described(name: str, code: int = 0, kind: int = TOPIC) -> dict[str, Any]:
    configs = [RETENTION] if code == 0 else []
    return {
        "error_code": code,
        "error_message": "",
        "resource_type": kind,
        "resource_name": name,
        "configs": configs,
    }


def responses(*results: dict[str, Any]) -> dict[str, Any]:
    return {"throttle_time_ms": 3, "results": list(results)}


def ours_in(result: dict[str, Any]) -> list[tuple[str, str | None]]:
    return [(each["name"], each["value"]) for each in result["configs"] if each["name"].startswith("sluicegate.")]


@VERSIONS
@pytest.mark.parametrize("has_fast_path", [False, True])
def test_description_of_topics_without_settings_is_forwarded_unchanged(version: int, has_fast_path: bool) -> None:
    scene = Scene(DESCRIBE, version, {"orders": {MODE: "observe"}}, has_fast_path)
    frame = scene.frame(description(("other", None), ("payments", [MODE])))

    scene.sends_frame(frame)
    assert scene.play.broker.sent == frame
    response = scene.response_frame(responses(described("other"), described("payments")))
    scene.broker_sends(response)

    assert scene.play.client.sent == response


@VERSIONS
@pytest.mark.parametrize("has_fast_path", [False, True])
def test_settings_are_added_to_the_broker_description(version: int, has_fast_path: bool) -> None:
    scene = Scene(DESCRIBE, version, {"orders": {OWNER: "team", MODE: "mark"}}, has_fast_path)
    frame = scene.frame(description(("orders", None), ("other", []), synonyms=True, docs=True))

    scene.sends_frame(frame)
    assert scene.play.broker.sent == frame
    response = scene.broker_responds(responses(described("orders"), described("other")))

    orders, other = response["results"]
    assert response["throttle_time_ms"] == 3
    assert [each["name"] for each in orders["configs"]] == ["retention.ms", OWNER, MODE, CLIENTS]
    assert ours_in(other) == []
    _, owner, _, clients = orders["configs"]
    assert (owner["value"], clients["value"]) == ("team", None)
    assert {each[flag] for each in (owner, clients) for flag in ("read_only", "is_sensitive")} == {False}
    if version == 0:
        assert (owner["is_default"], clients["is_default"]) == (False, False)  # as in a broker of release 3.9.1
    else:
        assert (owner["config_source"], clients["config_source"]) == (1, 5)
        assert owner["synonyms"] == [{"name": OWNER, "value": "team", "source": 1}]
        assert clients["synonyms"] == []
    if version >= 3:
        assert (owner["config_type"], clients["config_type"]) == (2, 7)
        assert owner["documentation"] == SETTING_KEYS[OWNER].description
        assert clients["documentation"] == SETTING_KEYS[CLIENTS].description


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_synonyms_and_documentation_are_only_added_on_request(version: int) -> None:
    scene = Scene(DESCRIBE, version, {"orders": {MODE: "mark"}})
    scene.sends(description(("orders", None)))

    response = scene.broker_responds(responses(described("orders")))

    for each in response["results"][0]["configs"]:
        assert (each["synonyms"], each.get("documentation")) == ([], None)


NAMES: list[tuple[list[str] | None, list[tuple[str, str | None]]]] = [
    (None, [(MODE, "mark"), (OWNER, None), (CLIENTS, None)]),
    ([], [(MODE, "mark"), (OWNER, None), (CLIENTS, None)]),
    ([MODE], [(MODE, "mark")]),
    (["retention.ms", OWNER, MODE, MODE], [(MODE, "mark"), (OWNER, None)]),
    (["retention.ms"], []),
    (["sluicegate.unknown"], []),
]


@VERSIONS
@pytest.mark.parametrize(("names", "expected"), NAMES)
def test_only_requested_settings_are_added(
    version: int, names: list[str] | None, expected: list[tuple[str, str | None]]
) -> None:
    scene = Scene(DESCRIBE, version, {"orders": {MODE: "mark"}})
    scene.sends(description(("orders", names)))

    response = scene.broker_responds(responses(described("orders")))

    assert ours_in(response["results"][0]) == expected


@VERSIONS
def test_each_duplicate_of_a_topic_gets_its_requested_settings(version: int) -> None:
    scene = Scene(DESCRIBE, version, {"orders": {MODE: "mark"}})
    scene.sends(description(("orders", [OWNER]), ("orders", [MODE])))

    response = scene.broker_responds(responses(described("orders"), described("orders")))

    assert [ours_in(each) for each in response["results"]] == [[(OWNER, None)], [(MODE, "mark")]]


@VERSIONS
def test_no_settings_are_added_to_errors_or_other_resource_types(version: int) -> None:
    scene = Scene(DESCRIBE, version, {"orders": {MODE: "mark"}, "1": {MODE: "mark"}})
    value = description(("orders", None))
    value["resources"].append({"resource_type": 4, "resource_name": "1", "configuration_keys": None})
    scene.sends_frame(scene.frame(value))
    response = scene.response_frame(responses(described("orders", 29), described("1", kind=4)))

    scene.broker_sends(response)

    assert scene.play.client.sent == response


@VERSIONS
def test_stored_setting_with_unknown_key_is_described(version: int) -> None:
    scene = Scene(DESCRIBE, version, {"orders": {"sluicegate.of.later": "1"}})
    scene.sends(description(("orders", ["sluicegate.of.later"])))

    response = scene.broker_responds(responses(described("orders")))

    assert ours_in(response["results"][0]) == [("sluicegate.of.later", "1")]


@VERSIONS
def test_the_settings_of_many_topics_are_added(version: int) -> None:
    names = [f"t{number}" for number in range(2_000)]
    scene = Scene(DESCRIBE, version, {name: {MODE: "mark", OWNER: name} for name in names})
    scene.sends_frame(scene.frame(description(*((name, None) for name in names))))

    response = scene.broker_responds(responses(*map(described, names)))

    assert [ours_in(each)[:2] for each in response["results"]] == [[(MODE, "mark"), (OWNER, name)] for name in names]


@VERSIONS
def test_a_malformed_request_closes_the_connection(version: int) -> None:
    scene = Scene(DESCRIBE, version, {"orders": {MODE: "mark"}})
    body = scene.frame(description(("orders", None)))[4:-4]

    scene.play.from_client(len(body).to_bytes(4, "big") + body)

    assert not scene.play.client.is_read
    assert scene.play.broker.sent == b""
    assert scene.counters.protocol_errors == 1


@VERSIONS
def test_a_malformed_response_closes_both_connections(version: int) -> None:
    scene = Scene(DESCRIBE, version, {"orders": {MODE: "mark"}})
    scene.sends(description(("orders", None)))
    body = scene.response_frame(responses(described("orders")))[4:-5]

    scene.broker_sends(len(body).to_bytes(4, "big") + body)

    assert scene.play.client.is_closing()
    assert scene.play.broker.is_closing()
    assert scene.counters.protocol_errors == 0


@VERSIONS
def test_describe_request_is_forwarded_unparsed_without_topic_policies(version: int) -> None:
    scene = Scene(DESCRIBE, version)
    frame = scene.frame(description(("orders", [MODE])))

    for play in (Playbook(), Playbook(SLUICEGATE__STATE__TOPIC="state")):
        play.from_client(frame[:-2])  # the request is not complete

        assert play.broker.sent == frame[:-2]
