"""sluicegate's topic settings are altered through a whole session, in each version of both APIs."""

from typing import Any

import pytest

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.change_requests import MOST_READ
from sluicegate.proxy.session.topic_settings import Requester, StoreFailure
from tests.proxy.session.settings.scene import CLIENTS, MODE, OWNER, Scene

ALTER, INCREMENTAL = ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS
SET, DELETE, APPEND, SUBTRACT = range(4)
RETENTION = "retention.ms"
INCREMENTAL_VERSIONS = pytest.mark.parametrize("version", range(2))
ALTER_VERSIONS = pytest.mark.parametrize("version", range(3))
BOTH = pytest.mark.parametrize(
    ("api", "version"), [*((ALTER, v) for v in range(3)), *((INCREMENTAL, v) for v in (0, 1))]
)

Entry = tuple[str, int, str | None]


def entries(*settings: Entry) -> list[dict[str, Any]]:
    return [{"name": name, "config_operation": operation, "value": value} for name, operation, value in settings]


def resource(name: str, *settings: Entry, kind: int = 2) -> dict[str, Any]:
    return {"resource_type": kind, "resource_name": name, "configs": entries(*settings)}


def alteration(*resources: dict[str, Any], validate: bool = False) -> dict[str, Any]:
    return {"resources": list(resources), "validate_only": validate}


def for_api(api: ApiKey, value: dict[str, Any]) -> dict[str, Any]:
    """AlterConfigs has no operations."""
    if api is INCREMENTAL:
        return value
    resources = [
        {**each, "configs": [{"name": one["name"], "value": one["value"]} for one in each["configs"]]}
        for each in value["resources"]
    ]
    return {**value, "resources": resources}


def results(*given: tuple[str, int, str | None], kind: int = 2) -> dict[str, Any]:
    named = [
        {"error_code": code, "error_message": message, "resource_type": kind, "resource_name": name}
        for name, code, message in given
    ]
    return {"throttle_time_ms": 3, "responses": named}


def errors_in(response: dict[str, Any]) -> list[tuple[str, int, str | None]]:
    return [(each["resource_name"], each["error_code"], each["error_message"]) for each in response["responses"]]


@INCREMENTAL_VERSIONS
def test_settings_are_stored_after_the_broker_has_validated_an_empty_request(version: int) -> None:
    scene = Scene(INCREMENTAL, version, {"orders": {OWNER: "team-a"}})

    asked = scene.sends(alteration(resource("orders", (MODE, SET, "observe"))))

    assert asked == alteration(resource("orders"), validate=True)
    assert scene.stored.refusals == [("orders", {OWNER: "team-a", MODE: "observe"})]
    assert scene.stored.commits == []
    response = scene.broker_responds(results(("orders", 0, None)))
    assert (errors_in(response), response["throttle_time_ms"]) == ([("orders", 0, None)], 3)
    (change,) = scene.stored.commits
    assert (change.topic, change.values, change.removed) == ("orders", {MODE: "observe"}, frozenset())
    assert (change.topic_id, change.is_deleted) == (None, False)
    assert scene.stored.requesters == [Requester("terraform", "192.0.2.1:5")]
    assert scene.counters.topic_setting_changes == {"IncrementalAlterConfigs": 1}


@INCREMENTAL_VERSIONS
def test_broker_receives_only_its_own_settings_of_a_mixed_request(version: int) -> None:
    scene = Scene(INCREMENTAL, version)

    mixed = resource("orders", (RETENTION, SET, "1"), (MODE, SET, "observe"), ("cleanup.policy", APPEND, "compact"))
    asked = scene.sends(
        alteration(mixed, resource("other", (MODE, DELETE, None)), resource("1", ("a", 0, "b"), kind=4))
    )

    assert asked == alteration(
        resource("orders", (RETENTION, SET, "1"), ("cleanup.policy", APPEND, "compact")),
        resource("other"),
        resource("1", ("a", 0, "b"), kind=4),
    )


@BOTH
def test_settings_are_not_stored_if_the_broker_rejects_the_topic(api: ApiKey, version: int) -> None:
    scene = Scene(api, version)
    scene.sends(
        for_api(api, alteration(resource("orders", (MODE, SET, "observe")), resource("b", (MODE, SET, "mark"))))
    )

    refused = ("orders", 29, "Topic authorization failed.")
    response = scene.broker_responds(results(refused, ("b", 0, "")))

    assert errors_in(response) == [refused, ("b", 0, "")]
    assert [change.topic for change in scene.stored.commits] == ["b"]


@BOTH
def test_validate_only_request_stores_no_settings(api: ApiKey, version: int) -> None:
    scene = Scene(api, version, {"b": {MODE: "mark"}})

    asked = scene.sends(
        for_api(
            api,
            alteration(
                resource("orders", (MODE, SET, "observe")),
                resource("bad", (MODE, SET, "bad")),
                resource("b"),
                validate=True,
            ),
        )
    )
    assert asked == for_api(api, alteration(resource("bad"), validate=True))
    asked = scene.broker_validates(results(("bad", 0, None)))
    response = scene.broker_responds(results(("orders", 0, None), ("b", 0, None)))

    assert asked["validate_only"] is True
    assert [each["resource_name"] for each in asked["resources"]] == ["orders", "b"]
    assert errors_in(response) == [("orders", 0, None), ("bad", 40, f"{MODE} of bad is bad"), ("b", 0, None)]
    assert scene.stored.commits == []
    assert scene.counters.topic_setting_changes == {}


@BOTH
def test_rejected_topics_are_not_forwarded_and_valid_topics_are_changed(api: ApiKey, version: int) -> None:
    scene = Scene(api, version)

    asked = scene.sends(
        for_api(
            api,
            alteration(
                resource("a", (MODE, SET, "bad"), (RETENTION, SET, "1")),
                resource("b", (MODE, SET, "observe")),
                resource("c", ("sluicegate.unknown", SET, "1")),
            ),
        )
    )
    assert asked == for_api(api, alteration(resource("a"), resource("c"), validate=True))
    asked = scene.broker_validates(results(("a", 0, None), ("c", 0, None)))
    response = scene.broker_responds(results(("b", 0, None)))

    assert [each["resource_name"] for each in asked["resources"]] == ["b"]
    expected = [("a", 40, f"{MODE} of a is bad"), ("b", 0, None), ("c", 40, "sluicegate.unknown of c is bad")]
    assert errors_in(response) == expected
    assert [change.topic for change in scene.stored.commits] == ["b"]
    assert scene.counters.request_errors == {(scene.api.name, "INVALID_CONFIG"): 2}


@BOTH
def test_broker_only_validates_if_every_topic_is_rejected(api: ApiKey, version: int) -> None:
    scene = Scene(api, version)

    asked = scene.sends(for_api(api, alteration(resource("a", (MODE, SET, "bad"), (RETENTION, SET, "1")))))

    assert asked == for_api(api, alteration(resource("a"), validate=True))
    assert scene.broker_validates(results(("a", 0, None))) is None
    assert errors_in(scene.clients_response()) == [("a", 40, f"{MODE} of a is bad")]


@BOTH
def test_broker_error_takes_precedence_over_invalid_value(api: ApiKey, version: int) -> None:
    """A client that may not alter a topic does not get to know what its owners may set."""
    scene = Scene(api, version)
    named = [resource(name, (MODE, SET, "bad")) for name in ("a", "b", "c")]
    scene.sends(for_api(api, alteration(*named, resource("d", (MODE, SET, "mark")))))

    denied, missing = ("a", 29, "Topic authorization failed."), ("b", 3, "The topic 'b' does not exist.")
    asked = scene.broker_validates(results(denied, missing, ("c", 0, None)))
    response = scene.broker_responds(results(("d", 0, None)))

    assert [each["resource_name"] for each in asked["resources"]] == ["d"]
    assert errors_in(response) == [denied, missing, ("c", 40, f"{MODE} of c is bad"), ("d", 0, None)]
    assert scene.counters.request_errors == {(scene.api.name, "INVALID_CONFIG"): 1}


@pytest.mark.parametrize(("code", "expected"), [(29, 29), (31, 31), (3, 40), (42, 40)])
def test_only_authorization_errors_take_precedence_over_unsupported_operation(code: int, expected: int) -> None:
    scene = Scene(INCREMENTAL, 1)
    scene.sends(alteration(resource("a", (MODE, APPEND, "b"))))

    scene.broker_validates(results(("a", code, "no")))

    assert [each for _, each, _ in errors_in(scene.clients_response())] == [expected]


@BOTH
@pytest.mark.parametrize("has_fast_path", [False, True])
def test_request_without_sluicegate_settings_is_forwarded_unchanged(
    api: ApiKey, version: int, has_fast_path: bool
) -> None:
    values = [alteration(resource("orders", (RETENTION, SET, "1"), ("a", SET, PREFIX_IN_A_VALUE)))]
    values.append(alteration(resource("1", (MODE, SET, "x"), kind=4)))  # a broker's setting with this name
    for value in values:
        scene = Scene(api, version, {"other": {MODE: "observe"}}, has_fast_path)
        frame = scene.frame(for_api(api, value))

        scene.sends_frame(frame)

        assert scene.play.broker.sent == frame
        response = scene.response_frame(results(("orders", 0, None), kind=value["resources"][0]["resource_type"]))
        scene.broker_sends(response)
        assert scene.play.client.sent == response
        assert scene.stored.commits == []


PREFIX_IN_A_VALUE = "sluicegate.mode"


@ALTER_VERSIONS
def test_alter_configs_deletes_settings_missing_in_the_request(version: int) -> None:
    stored = {"a": {MODE: "observe", OWNER: "x"}, "b": {OWNER: "y"}, "c": {OWNER: "z"}, "d": {OWNER: "z"}}
    scene = Scene(ALTER, version, stored)
    named = [resource("a", (MODE, SET, "mark")), resource("b", (RETENTION, SET, "1")), resource("c"), resource("d")]

    asked = scene.sends(for_api(ALTER, alteration(*named)))
    scene.broker_responds(results(("a", 0, None), ("b", 0, None), ("c", 0, None), ("d", 3, "gone")))

    assert asked["validate_only"] is False
    assert [(each["resource_name"], len(each["configs"])) for each in asked["resources"]] == [
        ("a", 0),
        ("b", 1),
        ("c", 0),
        ("d", 0),
    ]
    assert [(change.topic, change.values, change.removed) for change in scene.stored.commits] == [
        ("a", {MODE: "mark"}, {OWNER}),
        ("b", {}, {OWNER}),
        ("c", {}, {OWNER}),
    ]


@ALTER_VERSIONS
@pytest.mark.parametrize("validate", [False, True])
def test_alter_configs_without_sluicegate_settings_deletes_the_stored_ones(version: int, validate: bool) -> None:
    scene = Scene(ALTER, version, {"a": {MODE: "observe"}, "b": {OWNER: "y"}})
    value = for_api(ALTER, alteration(resource("a", (RETENTION, SET, "1")), resource("b"), validate=validate))
    frame = scene.frame(value)

    scene.sends_frame(frame)
    assert scene.play.broker.sent == frame
    response = scene.response_frame(results(("a", 0, None), ("b", 29, None)))
    scene.broker_sends(response)

    assert scene.play.client.sent == response
    removed = [] if validate else [("a", {}, {MODE})]
    assert [(change.topic, change.values, change.removed) for change in scene.stored.commits] == removed


@ALTER_VERSIONS
def test_failed_deletion_of_settings_is_returned_as_error_of_the_topic(version: int) -> None:
    scene = Scene(ALTER, version, {"a": {MODE: "observe"}})
    scene.stored.failure = StoreFailure("no broker responds")
    scene.sends(for_api(ALTER, alteration(resource("a"), resource("b"))))

    first, second = errors_in(scene.broker_responds(results(("a", 0, None), ("b", 0, None))))

    assert (first[:2], second) == (("a", -1), ("b", 0, None))
    assert "no broker responds" in str(first[2])
    assert "the broker's settings of this request are in force" in str(first[2])


@BOTH
@pytest.mark.parametrize("is_mixed", [False, True])
@pytest.mark.parametrize("is_temporary", [False, True])
def test_store_failure_message_says_which_settings_are_in_force(
    api: ApiKey, version: int, is_mixed: bool, is_temporary: bool
) -> None:
    """Clients repeat NOT_CONTROLLER (41), without its text for the user."""
    scene = Scene(api, version)
    scene.stored.failure = StoreFailure("no broker responds", is_temporary)
    mixed = [(RETENTION, SET, "1")] if is_mixed else []
    scene.sends(for_api(api, alteration(resource("a", (MODE, SET, "observe"), *mixed))))

    ((name, code, message),) = errors_in(scene.broker_responds(results(("a", 0, None))))

    in_force = "the broker's settings of this request are in force" in str(message)
    assert (name, code) == ("a", 41 if is_temporary and not in_force else -1)
    assert in_force == (is_mixed or api is ALTER)
    assert ("the broker has changed nothing" in str(message)) != in_force
    assert "no broker responds" in str(message)
    assert "repeat the request" in str(message)
    assert scene.counters.topic_setting_changes == {}


@INCREMENTAL_VERSIONS
def test_the_client_waits_until_settings_are_stored(version: int) -> None:
    scene = Scene(INCREMENTAL, version)
    scene.stored.report_later = True
    scene.sends(alteration(resource("a", (MODE, SET, "observe"))))
    scene.play.from_broker(scene.response_frame(results(("a", 0, None))))
    scene.play.loop.until(lambda: bool(scene.stored.reports))

    assert scene.play.client.sent == b""
    scene.stored.reports[0]()
    scene.play.loop.until(lambda: bool(scene.play.client.sent))
    assert errors_in(scene.clients_response()) == [("a", 0, None)]


# A broker's errors for its own settings (3.9.1 and 4.3.1), with the names of our settings.
FLAWS: list[tuple[list[Entry], int, str | None]] = [
    ([(MODE, SET, "a"), (MODE, SET, "b")], 42, "Error due to duplicate config keys"),
    ([(MODE, SET, "a"), (RETENTION, SET, "1"), (RETENTION, SET, "1")], 42, "Error due to duplicate config keys"),
    ([(MODE, SET, None)], 42, f"Null value not supported for : {MODE}"),
    ([(MODE, SET, None), (RETENTION, SET, None)], 42, f"Null value not supported for : {MODE}, {RETENTION}"),
    ([(MODE, DELETE, None), (MODE, SET, None)], 42, "Error due to duplicate config keys"),
]
INCREMENTAL_FLAWS: list[tuple[list[Entry], int, str | None]] = [
    ([(MODE, APPEND, "a")], 40, f"Can't APPEND to key {MODE} because its type is not LIST."),
    ([(MODE, SUBTRACT, "a")], 40, f"Can't SUBTRACT to key {MODE} because its type is not LIST."),
    ([("sluicegate.x", APPEND, "a")], 40, "Can't APPEND to key sluicegate.x because its type is not LIST."),
    ([(CLIENTS, APPEND, None)], 42, f"Null value not supported for : {CLIENTS}"),
    ([(MODE, 9, "a")], -1, None),
    ([(MODE, -1, "a")], -1, None),
]


@pytest.mark.parametrize(
    ("api", "settings", "code", "message"),
    [*((ALTER, *row) for row in FLAWS), *((INCREMENTAL, *row) for row in FLAWS + INCREMENTAL_FLAWS)],
)
def test_checks_of_whole_requests_return_the_same_errors_as_a_broker(
    api: ApiKey, settings: list[Entry], code: int, message: str | None
) -> None:
    for version in range(3 if api is ALTER else 2):
        scene = Scene(api, version)

        asked = scene.sends(for_api(api, alteration(resource("a", *settings), resource("b", (RETENTION, SET, "1")))))
        if code != 42:
            assert asked == alteration(resource("a"), validate=True)
            asked = scene.broker_validates(results(("a", 0, None)))
        response = scene.broker_responds(results(("b", 0, None)))

        assert [each["resource_name"] for each in asked["resources"]] == ["b"]
        assert errors_in(response) == [("a", code, message), ("b", 0, None)]
        assert scene.stored.refusals == []
        assert scene.stored.commits == []


@BOTH
def test_duplicate_topic_is_forwarded_for_the_broker_to_reject(api: ApiKey, version: int) -> None:
    scene = Scene(api, version, {"a": {OWNER: "x"}})
    twice = resource("a", (MODE, SET, "bad")), resource("b", (MODE, SET, "mark")), resource("a", (RETENTION, SET, "1"))

    asked = scene.sends(for_api(api, alteration(*twice)))
    message = "Each resource must appear at most once."
    response = scene.broker_responds(results(("a", 42, message), ("b", 0, None), ("a", 42, message)))

    assert [(each["resource_name"], len(each["configs"])) for each in asked["resources"]] == [
        ("a", 0),
        ("b", 0),
        ("a", 1),
    ]
    assert errors_in(response) == [("a", 42, message), ("b", 0, None), ("a", 42, message)]
    assert [change.topic for change in scene.stored.commits] == ["b"]


LISTS: list[tuple[str | None, int, str, str | None]] = [
    (None, APPEND, "a", "a"),
    ("a", APPEND, "b,c", "a,b,c"),
    ("a,b", APPEND, "b,d", "a,b,d"),
    ("a,b,c", SUBTRACT, "a,c", "b"),
    ("a", SUBTRACT, "a,x", None),
    (None, SUBTRACT, "a", None),
    ("a,,b", APPEND, "c,,", "a,b,c"),
]


@INCREMENTAL_VERSIONS
@pytest.mark.parametrize(("current", "operation", "value", "expected"), LISTS)
def test_append_and_subtract_change_lists_as_a_broker_does(
    version: int, current: str | None, operation: int, value: str, expected: str | None
) -> None:
    scene = Scene(INCREMENTAL, version, {} if current is None else {"a": {CLIENTS: current}})

    scene.sends(alteration(resource("a", (CLIENTS, operation, value))))
    scene.broker_responds(results(("a", 0, None)))

    values = {} if expected is None else {CLIENTS: expected}
    assert scene.stored.refusals == ([("a", values)] if values else [])
    (change,) = scene.stored.commits
    assert (change.values, change.removed) == (values, frozenset() if values else {CLIENTS})


@INCREMENTAL_VERSIONS
def test_unknown_last_setting_of_a_topic_can_be_deleted(version: int) -> None:
    scene = Scene(INCREMENTAL, version, {"a": {"sluicegate.old": "1"}})

    scene.sends(alteration(resource("a", ("sluicegate.old", DELETE, None))))
    response = scene.broker_responds(results(("a", 0, None)))

    assert errors_in(response) == [("a", 0, None)]
    assert scene.stored.refusals == []
    assert [change.removed for change in scene.stored.commits] == [{"sluicegate.old"}]


@BOTH
def test_oversized_request_gets_an_error_for_each_resource(api: ApiKey, version: int) -> None:
    scene = Scene(api, version)
    many = [resource(f"t{n}", (RETENTION, SET, "1")) for n in range(MOST_READ // 2)]

    asked = scene.sends(for_api(api, alteration(*many, resource("a", (MODE, SET, "observe")))))

    assert asked is None
    found = errors_in(scene.clients_response())
    assert [name for name, _, _ in found] == [*(f"t{n}" for n in range(MOST_READ // 2)), "a"]
    assert {(code, message) for _, code, message in found} == {(42, found[0][2])}
    assert f"at most {MOST_READ}" in str(found[0][2])
    assert scene.counters.request_errors == {(scene.api.name, "INVALID_REQUEST"): len(found)}


@BOTH
def test_large_request_without_sluicegate_settings_is_forwarded_unchanged(api: ApiKey, version: int) -> None:
    scene = Scene(api, version)
    many = [resource(f"t{n}", (RETENTION, SET, PREFIX_IN_A_VALUE)) for n in range(MOST_READ // 2 + 1)]
    frame = scene.frame(for_api(api, alteration(*many)))

    scene.sends_frame(frame)

    assert scene.play.broker.sent == frame


@BOTH
def test_a_malformed_request_closes_the_connection(api: ApiKey, version: int) -> None:
    scene = Scene(api, version)
    frame = scene.frame(for_api(api, alteration(resource("a", (MODE, SET, "observe")))))
    body = frame[4:-3]

    scene.play.from_client(len(body).to_bytes(4, "big") + body)
    scene.play.loop.until(lambda: bool(scene.counters.protocol_errors))

    assert scene.play.broker.sent == b""
    assert not scene.play.client.is_read


@BOTH
def test_a_malformed_response_closes_both_connections(api: ApiKey, version: int) -> None:
    scene = Scene(api, version)
    scene.sends(for_api(api, alteration(resource("a", (MODE, SET, "observe")))))
    response = scene.response_frame(results(("a", 0, None)))
    body = response[4:-4]

    scene.broker_sends(len(body).to_bytes(4, "big") + body)

    assert scene.play.client.is_closing()
    assert scene.play.broker.is_closing()
    assert scene.stored.commits == []
    assert scene.counters.protocol_errors == 0


@INCREMENTAL_VERSIONS
def test_settings_of_the_proxys_own_topics_are_rejected_first(version: int) -> None:
    scene = Scene(INCREMENTAL, version, SLUICEGATE__STATE__TOPIC="sluicegate-state")

    asked = scene.sends(alteration(resource("sluicegate-state", (MODE, SET, "observe"))))

    assert asked is None
    assert [code for _, code, _ in errors_in(scene.clients_response())] == [29]
    assert scene.stored.refusals == []


@pytest.mark.parametrize("offset", range(12))
def test_setting_is_found_at_any_offset_of_a_large_request(offset: int) -> None:
    """The frame is searched in pieces of a megabyte. The name begins at each place around the end of one."""
    scene = Scene(INCREMENTAL, 0)
    filling = [("a", SET, "x" * 32_000)] * 32
    frame = scene.frame(alteration(resource("t" * 100, *filling, (MODE, SET, "observe"))))
    missing = (1 << 20) + 4 - frame.index(MODE.encode()) - offset
    filling.append(("b" * (missing - 5), SET, ""))

    asked = scene.sends(alteration(resource("t" * 100, *filling, (MODE, SET, "observe"))))

    assert asked is None  # the generated entries name one setting several times
    frame = scene.frame(alteration(resource("t" * 100, *filling, (MODE, SET, "observe"))))
    assert frame.index(MODE.encode()) - 4 == (1 << 20) - offset
