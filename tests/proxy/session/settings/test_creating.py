"""Topics with sluicegate's settings are created and deleted through a whole session, in each version."""

from typing import Any

import pytest

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.change_requests import MOST_READ
from sluicegate.proxy.session.settings.described_topics import listed_settings
from sluicegate.proxy.session.topic_settings import StoreFailure
from tests.proxy.session.settings.scene import MODE, OWNER, Scene

CREATE, DELETE = ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS
CREATE_VERSIONS = pytest.mark.parametrize("version", range(8))
DELETE_VERSIONS = pytest.mark.parametrize("version", range(7))
ID, NO_ID = b"i" * 16, bytes(16)
RETENTION = ("retention.ms", "1")


def topic(name: str, *settings: tuple[str, str | None]) -> dict[str, Any]:
    configs = [{"name": key, "value": value} for key, value in settings]
    return {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": configs}


def creation(*topics: dict[str, Any], validate: bool = False) -> dict[str, Any]:
    return {"topics": list(topics), "timeout_ms": 5, "validate_only": validate}


def created(name: str, code: int = 0, message: str | None = None, is_shown: bool = True) -> dict[str, Any]:
    shown = {"name": "retention.ms", "value": "1", "read_only": False, "config_source": 1, "is_sensitive": False}
    return {
        "name": name,
        "topic_id": ID if code == 0 else NO_ID,
        "error_code": code,
        "error_message": message,
        "num_partitions": 1,
        "replication_factor": 1,
        "configs": [shown] if code == 0 and is_shown else [],
    }


def responses(*topics: dict[str, Any]) -> dict[str, Any]:
    return {"throttle_time_ms": 3, "topics": list(topics)}


def errors_in(response: dict[str, Any]) -> list[tuple[str, int, str | None]]:
    return [(each["name"], each["error_code"], each.get("error_message")) for each in response["topics"]]


@CREATE_VERSIONS
def test_settings_of_a_new_topic_are_stored_after_the_broker_has_created_it(version: int) -> None:
    scene = Scene(CREATE, version)

    asked = scene.sends(creation(topic("orders", RETENTION, (MODE, "observe")), topic("other")))

    assert asked["topics"] == [topic("orders", RETENTION), topic("other")]
    assert scene.stored.refusals == [("orders", {MODE: "observe"})]
    response = scene.broker_responds(responses(created("other"), created("orders")))
    (change,) = scene.stored.commits
    assert (change.topic, change.topic_id) == ("orders", ID if version >= 7 else None)
    assert (change.values, change.removed) == ({MODE: "observe"}, frozenset())
    orders = next(each for each in response["topics"] if each["name"] == "orders")
    other = next(each for each in response["topics"] if each["name"] == "other")
    assert (orders["error_code"], other["error_code"]) == (0, 0)
    if version >= 5:
        ours = [(each["name"], each["value"], each["config_source"]) for each in orders["configs"][1:]]
        assert ours[0] == (MODE, "observe", 1)
        assert [name for name, _, _ in ours] == [
            each.name for each in listed_settings(scene.stored, "orders", {MODE: "observe"})
        ]
        assert {(value, source) for _, value, source in ours[1:]} == {(None, 5)}
        assert len(other["configs"]) == 1


@pytest.mark.parametrize("version", [5, 6, 7])
def test_response_omits_settings_for_clients_without_read_permission(version: int) -> None:
    scene = Scene(CREATE, version)
    scene.sends(creation(topic("orders", (MODE, "observe"))))

    response = scene.broker_responds(responses(created("orders", is_shown=False)))

    assert response["topics"][0]["configs"] == []
    assert len(scene.stored.commits) == 1


@CREATE_VERSIONS
def test_settings_are_not_stored_if_the_broker_does_not_create_the_topic(version: int) -> None:
    scene = Scene(CREATE, version)
    scene.sends(creation(topic("a", (MODE, "observe")), topic("b", (MODE, "mark"))))

    exists = ("a", 36, "Topic 'a' already exists." if version >= 1 else None)
    response = scene.broker_responds(responses(created(*exists), created("b")))

    assert exists in errors_in(response)
    assert [change.topic for change in scene.stored.commits] == ["b"]


@pytest.mark.parametrize("version", range(1, 8))
def test_validate_only_request_stores_no_settings(version: int) -> None:
    scene = Scene(CREATE, version)

    asked = scene.sends(creation(topic("a", (MODE, "observe")), topic("b", (MODE, "bad")), validate=True))
    assert asked == creation(topic("b"), validate=True)
    asked = scene.broker_validates(responses(created("b")))
    response = scene.broker_responds(responses(created("a")))

    assert asked == creation(topic("a"), validate=True)
    assert errors_in(response) == [("a", 0, None), ("b", 40, f"{MODE} of b is bad")]
    assert scene.stored.commits == []


@CREATE_VERSIONS
def test_topics_with_invalid_settings_are_not_created(version: int) -> None:
    scene = Scene(CREATE, version)

    asked = scene.sends(creation(topic("a", (MODE, "bad")), topic("b"), topic("c", (OWNER, None), ("x", None))))
    if version >= 1:
        assert asked == creation(topic("a"), topic("c"), validate=True)
        asked = scene.broker_validates(responses(created("a"), created("c")))
    response = scene.broker_responds(responses(created("b")))

    assert asked["topics"] == [topic("b")]
    nulls = f"Null value not supported for topic configs: {OWNER},x"
    texts = [f"{MODE} of a is bad", None, nulls] if version >= 1 else [None] * 3
    assert errors_in(response) == list(zip(("a", "b", "c"), (40, 0, 40), texts, strict=True))
    assert scene.counters.request_errors == {("CreateTopics", "INVALID_CONFIG"): 2}


@pytest.mark.parametrize("version", range(1, 8))
def test_broker_error_takes_precedence_over_invalid_value(version: int) -> None:
    scene = Scene(CREATE, version)
    scene.sends(creation(topic("a", (MODE, "bad"), RETENTION), topic("b", (MODE, None))))

    exists = ("a", 36, "Topic 'a' already exists.")
    assert scene.broker_validates(responses(created(*exists), created("b"))) is None

    nulls = ("b", 40, f"Null value not supported for topic configs: {MODE}")
    assert errors_in(scene.clients_response()) == [exists, nulls]


@CREATE_VERSIONS
def test_last_of_duplicate_settings_applies(version: int) -> None:
    scene = Scene(CREATE, version)

    asked = scene.sends(creation(topic("a", (MODE, "bad"), RETENTION, RETENTION, (MODE, "mark"))))
    scene.broker_responds(responses(created("a")))

    assert asked["topics"] == [topic("a", RETENTION, RETENTION)]
    assert [change.values for change in scene.stored.commits] == [{MODE: "mark"}]


@CREATE_VERSIONS
def test_store_failure_message_says_that_the_topic_was_created(version: int) -> None:
    scene = Scene(CREATE, version)
    scene.stored.failure = StoreFailure("no broker responds")
    scene.sends(creation(topic("a", (MODE, "observe")), topic("b")))

    response = scene.broker_responds(responses(created("a"), created("b")))

    (name, code, message), second = errors_in(response)
    assert ((name, code), second) == (("a", -1), ("b", 0, None))
    if version >= 1:
        assert "the topic was created, but its sluicegate settings could not be stored" in str(message)
        assert "no broker responds" in str(message)


@CREATE_VERSIONS
@pytest.mark.parametrize("has_fast_path", [False, True])
def test_creation_without_sluicegate_settings_is_forwarded_unchanged(version: int, has_fast_path: bool) -> None:
    scene = Scene(CREATE, version, {"other": {MODE: "observe"}}, has_fast_path)
    frame = scene.frame(creation(topic("a", RETENTION)))

    scene.sends_frame(frame)
    assert scene.play.broker.sent == frame
    response = scene.response_frame(responses(created("a")))
    scene.broker_sends(response)

    assert scene.play.client.sent == response
    assert scene.stored.commits == []


@CREATE_VERSIONS
@pytest.mark.parametrize("validate", [False, True])
def test_recreated_topic_starts_without_settings(version: int, validate: bool) -> None:
    scene = Scene(CREATE, version, {"a": {MODE: "observe"}, "b": {MODE: "observe", OWNER: "x"}})
    scene.stored.failure = StoreFailure("no broker responds")  # the topic has no settings in any case: another id
    scene.sends_frame(scene.frame(creation(topic("a"), validate=validate)))
    response = scene.response_frame(responses(created("a")))
    scene.broker_sends(response)

    assert scene.play.client.sent == response
    is_stored = not validate or version == 0
    expected = [("a", ID if version >= 7 else None, {}, {MODE})] if is_stored else []
    assert [(each.topic, each.topic_id, each.values, each.removed) for each in scene.stored.commits] == expected


@CREATE_VERSIONS
def test_recreated_topic_has_only_the_settings_of_the_creation_request(version: int) -> None:
    scene = Scene(CREATE, version, {"a": {OWNER: "x"}})

    scene.sends(creation(topic("a", (MODE, "mark"))))
    scene.broker_responds(responses(created("a")))

    assert scene.stored.refusals == [("a", {MODE: "mark"})]
    assert [(each.values, each.removed) for each in scene.stored.commits] == [({MODE: "mark"}, {OWNER})]


@CREATE_VERSIONS
def test_duplicate_topic_is_forwarded_for_the_broker_to_reject(version: int) -> None:
    scene = Scene(CREATE, version)

    asked = scene.sends(creation(topic("a", (MODE, "bad")), topic("a"), topic("b", (MODE, "mark"))))
    duplicate = ("a", 42, "Duplicate topic name." if version >= 1 else None)
    response = scene.broker_responds(responses(created("b"), created(*duplicate)))

    assert asked["topics"] == [topic("a"), topic("a"), topic("b")]
    assert sorted(errors_in(response)) == [duplicate, ("b", 0, None)]
    assert [change.topic for change in scene.stored.commits] == ["b"]


@CREATE_VERSIONS
def test_oversized_creation_request_gets_an_error_for_each_topic(version: int) -> None:
    scene = Scene(CREATE, version)
    many = [topic(f"t{n}", RETENTION) for n in range(MOST_READ // 2)]

    asked = scene.sends(creation(*many, topic("a", (MODE, "observe"))))

    assert asked is None
    found = errors_in(scene.clients_response())
    assert [(name, code) for name, code, _ in found] == [(each["name"], 42) for each in [*many, topic("a")]]


def deletion(version: int, *names: str) -> dict[str, Any]:
    named = [{"name": name, "topic_id": NO_ID} for name in names]
    return {"topics": named, "topic_names": list(names), "timeout_ms": 5}


def deleted(name: str | None, code: int = 0, topic_id: bytes = NO_ID) -> dict[str, Any]:
    return {"name": name, "topic_id": topic_id, "error_code": code, "error_message": None}


@DELETE_VERSIONS
@pytest.mark.parametrize("has_fast_path", [False, True])
def test_a_deleted_topic_loses_its_settings(version: int, has_fast_path: bool) -> None:
    settings = {"a": {MODE: "observe"}, "b": {MODE: "observe"}, "kept": {MODE: "observe"}}
    scene = Scene(DELETE, version, settings, has_fast_path)
    frame = scene.frame(deletion(version, "a", "b", "c"))

    scene.sends_frame(frame)
    assert scene.play.broker.sent == frame
    results = [deleted("a", topic_id=ID), deleted("b", 29), deleted("c")]
    response = scene.response_frame({"throttle_time_ms": 0, "responses": results})
    scene.broker_sends(response)

    assert scene.play.client.sent == response
    (change,) = scene.stored.commits
    assert (change.topic, change.topic_id, change.is_deleted) == ("a", ID if version >= 6 else None, True)
    assert (change.values, change.removed) == ({}, frozenset())


def test_a_topic_that_is_deleted_by_its_id_loses_its_settings() -> None:
    scene = Scene(DELETE, 6, {"a": {MODE: "observe"}})
    by_id = [{"name": None, "topic_id": ID}, {"name": None, "topic_id": b"u" * 16}]
    scene.sends_frame(scene.frame({"topics": by_id, "timeout_ms": 5}))

    # A broker repeats the name of a topic that was deleted by id, but not the name of a topic that does not exist.
    results = [deleted("a", topic_id=ID), deleted(None, 100, b"u" * 16)]
    scene.broker_sends(scene.response_frame({"responses": results}))

    assert [(change.topic, change.topic_id) for change in scene.stored.commits] == [("a", ID)]


@DELETE_VERSIONS
def test_store_failure_after_topic_deletion_is_not_returned_to_the_client(version: int) -> None:
    scene = Scene(DELETE, version, {"a": {MODE: "observe"}})
    scene.stored.failure = StoreFailure("no broker responds")
    scene.sends_frame(scene.frame(deletion(version, "a")))
    response = scene.response_frame({"throttle_time_ms": 0, "responses": [deleted("a")]})

    scene.broker_sends(response)

    assert scene.play.client.sent == response
    assert scene.counters.topic_setting_changes == {}


@pytest.mark.parametrize(("api", "version"), [(CREATE, 7), (DELETE, 6)])
def test_a_malformed_response_closes_both_connections(api: ApiKey, version: int) -> None:
    scene = Scene(api, version, {"a": {MODE: "observe"}})
    scene.sends_frame(scene.frame(creation(topic("a")) if api is CREATE else deletion(version, "a")))
    value = responses(created("a")) if api is CREATE else {"responses": [deleted("a")]}
    body = scene.response_frame(value)[4:-5]

    scene.broker_sends(len(body).to_bytes(4, "big") + body)

    assert scene.play.client.is_closing()
    assert scene.play.broker.is_closing()
    assert scene.stored.commits == []
