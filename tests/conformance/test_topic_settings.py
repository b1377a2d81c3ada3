"""A proxy's responses about sluicegate's topic settings equal a broker's responses about its own, in each API and
version.

Each row is sent to the broker with its own settings, and through the proxy with sluicegate's settings of the same kind.
The responses are equal except for the names.

`SLUICEGATE_KAFKAS="4.0.0 4.1.1"` selects these Kafka releases instead of three (`make .kafka/4.0.0/.complete`).
"""

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.protocol.messages.cluster import DESCRIBE_CONFIGS_REQUEST, DESCRIBE_CONFIGS_RESPONSE
from sluicegate.protocol.messages.schema import MessageSchema
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.integration.test_shared_state import STATE, create_state_topic
from tests.integration.topics import create_topic
from tests.wire.raw_client import RawClient
from tests.wire.topic_changes import SCHEMAS

pytestmark = pytest.mark.long

CREATE, DELETE, DESCRIBE = ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.DESCRIBE_CONFIGS
ALTER, INCREMENTAL = ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS
KAFKAS = os.environ.get("SLUICEGATE_KAFKAS", "3.9.1 4.3.1 4.4.0").split()
FIRST = {CREATE: 2, DELETE: 1, DESCRIBE: 1}
"""The first version that brokers support since Kafka 4.0 (KIP-896), if it is not 0."""
SET, REMOVE, APPEND, SUBTRACT = range(4)
PLAIN, LIST = "plain", "list"
THEIRS = {PLAIN: "retention.ms", LIST: "leader.replication.throttled.replicas"}
OURS = {PLAIN: "sluicegate.owner", LIST: "sluicegate.enforce.clients"}
NO_ID = bytes(16)
_AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
_DENIED = {"may-not-alter": AclOperation.ALTER_CONFIGS, "may-not-describe": AclOperation.DESCRIBE_CONFIGS}
_MAY_NOT_BE_CREATED = "may-not-be-created"

Entry = tuple[str, int, str | None]


@dataclass(frozen=True)
class Side:
    """A broker with its own settings, or a proxy with those of sluicegate."""

    address: str
    names: dict[str, str]

    def call(self, api: ApiKey, version: int, value: dict[str, Any]) -> dict[str, Any]:
        request, response = _schemas(api)
        with RawClient(self.address) as client:
            found = client.call(api, version, response, request.build(value, version))
        assert not isinstance(found, str), f"{APIS[api].name} v{version}: {found}"
        return found

    def entries(self, api: ApiKey, entries: list[Entry]) -> list[dict[str, Any]]:
        operation = api is INCREMENTAL
        return [
            {"name": self.names.get(name, name), "value": value, **({"config_operation": kind} if operation else {})}
            for name, kind, value in entries
        ]

    def without_names(self, text: str | None, topics: dict[str, str]) -> str | None:
        for name, kind in ((name, kind) for kind, name in self.names.items()):
            text = text and text.replace(name, kind)
        for name, kind in topics.items():
            text = text and text.replace(name, kind)
        return text


@dataclass(frozen=True)
class Pair:
    """The two sides of one cluster. `version` is that of its broker."""

    version: str
    broker: Side
    proxy: Side

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.broker, self.proxy

    def versions(self, api: ApiKey) -> range:
        first = 0 if self.version.startswith("3.") else FIRST.get(api, 0)
        return range(first, APIS[api].max_version + 1)


def _schemas(api: ApiKey) -> tuple[MessageSchema, MessageSchema]:
    if api is DESCRIBE:
        return DESCRIBE_CONFIGS_REQUEST, DESCRIBE_CONFIGS_RESPONSE
    return SCHEMAS[f"{APIS[api].name}Request"], SCHEMAS[f"{APIS[api].name}Response"]


@pytest.fixture(scope="module", params=KAFKAS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    kafka = Kafka(request.param, tmp_path_factory.mktemp("kafka"), settings=_AUTHORIZER)
    process = None
    try:
        kafka.start()
        state = create_topic(kafka.bootstrap, STATE, partitions=1, prefix="state")
        for other in ("presence", "history"):
            create_state_topic(kafka.bootstrap, f"{state}-{other}")
        _deny(kafka.bootstrap)
        process = ProxyProcess(tmp_path_factory.mktemp("proxy"), kafka.bootstrap)
        process.config |= {"state": {"topic": state}, "topic_policies": [{"topics": ["*"], "keys": ["*"]}]}
        process.start()
        through = f"127.0.0.1:{process.broker_port(1)}"
        yield Pair(request.param, Side(kafka.bootstrap, THEIRS), Side(through, OURS))
    finally:
        if process is not None:
            process.stop()
        kafka.stop()


def _deny(bootstrap: str) -> None:
    """Create topics with which clients may not do everything."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    allow, deny = AclPermissionType.ALLOW, AclPermissionType.DENY
    for name in _DENIED:
        create_state_topic(bootstrap, name)
    rights = [((ResourceType.BROKER, "kafka-cluster"), AclOperation.CLUSTER_ACTION, allow)]
    rights += [((ResourceType.TOPIC, name), operation, deny) for name, operation in _DENIED.items()]
    rights += [((ResourceType.TOPIC, name), AclOperation.ALL, allow) for name in _DENIED]
    rights.append(((ResourceType.TOPIC, _MAY_NOT_BE_CREATED), AclOperation.CREATE, deny))
    bindings = [
        AclBinding(*about, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", operation, permission)
        for about, operation, permission in rights
    ]
    for future in admin.create_acls(bindings).values():
        future.result(30)


def new_topic(pair: Pair) -> str:
    return create_topic(pair.broker.address, {}, 1, prefix="orders")


def altered(
    side: Side, api: ApiKey, version: int, *named: tuple[str, list[Entry]], validate: bool = False
) -> list[Any]:
    """Return the errors of each topic, without names of settings."""
    resources = [
        {"resource_type": 2, "resource_name": topic, "configs": side.entries(api, entries)} for topic, entries in named
    ]
    response = side.call(api, version, {"resources": resources, "validate_only": validate})
    return [
        (
            each["resource_type"],
            each["resource_name"],
            each["error_code"],
            side.without_names(each["error_message"], {}),
        )
        for each in response["responses"]
    ]


def described(side: Side, version: int, topic: str, *names: str) -> dict[str, Any]:
    """Return the described settings, by their kinds."""
    resource = {"resource_type": 2, "resource_name": topic, "configuration_keys": [side.names[name] for name in names]}
    value = {"resources": [resource], "include_synonyms": True, "include_documentation": True}
    (result,) = side.call(DESCRIBE, version, value)["results"]
    kinds = {name: kind for kind, name in side.names.items()}
    return {kinds[each["name"]]: each for each in result["configs"] if each["name"] in kinds}


def value_of(side: Side, topic: str, name: str) -> str | None:
    """Return the value that was set; None if there is none."""
    found = described(side, 4, topic, name).get(name)
    return found["value"] if found is not None and found["config_source"] == 1 else None


def has_value(side: Side, topic: str, name: str, expected: str | None) -> None:
    """Wait until a new topic is known, and its setting has this value."""
    eventually(lambda: value_of(side, topic, name) == expected, what=f"{expected} as {name} of {topic}")


ENTRIES: list[list[Entry]] = [
    [(PLAIN, SET, "60000")],
    [(PLAIN, REMOVE, None)],
    [(PLAIN, REMOVE, "60000")],
    [(PLAIN, SET, None)],
    [(PLAIN, SET, "60000"), (PLAIN, SET, "70000")],
    [(PLAIN, SET, None), (PLAIN, REMOVE, None)],
    [(PLAIN, SET, None), (LIST, APPEND, None)],
    [(PLAIN, APPEND, "60000")],
    [(PLAIN, SUBTRACT, "60000")],
    [(PLAIN, 9, "60000")],
    [(PLAIN, -1, "60000")],
    [(PLAIN, 9, None)],
    [(LIST, SET, "1:1")],
    [(LIST, APPEND, "1:1,1:2")],
    [(LIST, SUBTRACT, "1:1")],
    [(LIST, SUBTRACT, None)],
]
TOPICS = ["existing", "no-such-topic", "no topic", "may-not-alter", ""]


@pytest.mark.parametrize("entries", ENTRIES, ids=str)
@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("validate", [False, True])
def test_proxy_and_broker_respond_equally_to_incremental_alterations(
    pair: Pair, topic: str, entries: list[Entry], validate: bool
) -> None:
    for version in pair.versions(INCREMENTAL):
        name = new_topic(pair) if topic == "existing" else topic
        theirs, ours = (altered(side, INCREMENTAL, version, (name, entries), validate=validate) for side in pair.sides)

        assert ours == theirs
        if topic == "existing" and any(kind == LIST for kind, _, _ in entries):
            shown = [value_of(side, name, LIST) for side in pair.sides]
            assert (shown[1] or "") == (shown[0] or "")


@pytest.mark.parametrize(
    "entries",
    [*ENTRIES[:1], *ENTRIES[3:5], [(PLAIN, SET, None), (LIST, SET, None)], [(LIST, SET, "1:1")], []],
    ids=str,
)
@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("validate", [False, True])
def test_proxy_and_broker_respond_equally_to_alterations(
    pair: Pair, topic: str, entries: list[Entry], validate: bool
) -> None:
    for version in pair.versions(ALTER):
        name = new_topic(pair) if topic == "existing" else topic
        if topic == "existing":
            for side in pair.sides:
                altered(side, INCREMENTAL, 1, (name, [(PLAIN, SET, "50000"), (LIST, SET, "2:2")]))

        theirs, ours = (altered(side, ALTER, version, (name, entries), validate=validate) for side in pair.sides)

        assert ours == theirs
        if topic == "existing":
            for kind in (PLAIN, LIST):
                # The request of the proxy's client also replaced the broker's own settings.
                shown = value_of(pair.proxy, name, kind)
                is_replaced = not validate and ours[0][2] == 0
                expected = (
                    {k: v for k, _, v in entries}.get(kind) if is_replaced else {PLAIN: "50000", LIST: "2:2"}[kind]
                )
                assert shown == expected
                assert not is_replaced or value_of(pair.broker, name, kind) is None


def test_an_invalid_topic_does_not_block_the_other_topics_of_a_request(pair: Pair) -> None:
    for api in (INCREMENTAL, ALTER):
        good, bad = new_topic(pair), new_topic(pair)
        for side in pair.sides:
            found = altered(
                side,
                api,
                1,
                (bad, [(PLAIN, SET, None)]),
                (good, [(LIST, SET, "1:1")]),
                ("may-not-alter", [(LIST, SET, "1:1")]),
            )

            assert [(name, code) for _, name, code, _ in found] == [(bad, 42), (good, 0), ("may-not-alter", 29)]
            has_value(side, good, LIST, "1:1")
            assert value_of(side, bad, PLAIN) is None


def test_proxy_and_broker_respond_equally_to_duplicate_topics(pair: Pair) -> None:
    for version in pair.versions(INCREMENTAL):
        name, other = new_topic(pair), new_topic(pair)
        named = [(name, [(PLAIN, SET, "60000")]), (other, [(PLAIN, SET, "60000")]), (name, [(LIST, SET, "1:1")])]

        theirs, ours = (altered(side, INCREMENTAL, version, *named) for side in pair.sides)

        assert ours == theirs
        assert value_of(pair.proxy, name, LIST) is None
        assert value_of(pair.proxy, other, PLAIN) == "60000"


def test_a_request_changes_broker_and_proxy_settings_together_or_not_at_all(pair: Pair) -> None:
    name = new_topic(pair)
    both, proxy = Side(pair.proxy.address, {**OURS, "theirs": "retention.ms"}), pair.proxy

    refused = altered(both, INCREMENTAL, 1, (name, [("theirs", SET, "no number"), (LIST, SET, "1:1")]))
    assert [code for _, _, code, _ in refused] == [40]
    assert value_of(proxy, name, LIST) is None

    refused = altered(both, INCREMENTAL, 1, (name, [("theirs", SET, "60000"), ("sluicegate.mode", SET, "no mode")]))
    assert [code for _, _, code, _ in refused] == [40]
    assert value_of(pair.broker, name, PLAIN) is None

    accepted = altered(both, INCREMENTAL, 1, (name, [("theirs", SET, "60000"), (LIST, SET, "1:1")]))
    assert [code for _, _, code, _ in accepted] == [0]
    assert (value_of(pair.broker, name, PLAIN), value_of(proxy, name, LIST)) == ("60000", "1:1")


def test_proxy_and_broker_describe_settings_equally(pair: Pair) -> None:
    name = new_topic(pair)
    for version in pair.versions(DESCRIBE):
        for side in pair.sides:
            altered(side, INCREMENTAL, 1, (name, [(LIST, SET, "1:1"), (PLAIN, REMOVE, None)]))
        theirs, ours = (described(side, version, name, PLAIN, LIST) for side in pair.sides)
        synonyms = [{**each, "name": LIST} for each in theirs[LIST].get("synonyms", [])]
        ours_renamed = [{**each, "name": LIST} for each in ours[LIST].get("synonyms", [])]

        differing = {"name", "documentation", "synonyms"}
        assert {k: v for k, v in ours[LIST].items() if k not in differing} == {
            k: v for k, v in theirs[LIST].items() if k not in differing
        }
        assert ours_renamed == synonyms
        flags = {"read_only", "is_sensitive", "is_default", "config_source"}
        assert {k: v for k, v in ours[PLAIN].items() if k in flags} == {
            k: v for k, v in theirs[PLAIN].items() if k in flags
        }
        if version >= 3:
            assert ours[LIST]["documentation"]


def test_a_client_without_describe_permission_gets_no_settings(pair: Pair) -> None:
    accepted = altered(pair.proxy, INCREMENTAL, 1, ("may-not-describe", [(LIST, SET, "1:1")]))
    assert [code for _, _, code, _ in accepted] == [0]

    for version in pair.versions(DESCRIBE):
        resource = {"resource_type": 2, "resource_name": "may-not-describe", "configuration_keys": None}
        value = {"resources": [resource], "include_synonyms": True, "include_documentation": True}
        theirs, ours = (side.call(DESCRIBE, version, value) for side in pair.sides)
        assert ours == theirs
        assert theirs["results"][0]["error_code"] == 29


CREATIONS: list[list[Entry]] = [
    [],
    [(PLAIN, SET, "60000")],
    [(LIST, SET, "1:1")],
    [(PLAIN, SET, None)],
    [(PLAIN, SET, None), (LIST, SET, None), (PLAIN, SET, None)],
    [(PLAIN, SET, "60000"), (PLAIN, SET, "70000")],
]


def topic_of(side: Side, name: str, entries: list[Entry]) -> dict[str, Any]:
    plain = {"num_partitions": 1, "replication_factor": 1, "assignments": []}
    return {"name": name, **plain, "configs": side.entries(CREATE, entries)}


def created(side: Side, version: int, *topics: dict[str, Any], validate: bool = False) -> list[dict[str, Any]]:
    value = {"topics": list(topics), "timeout_ms": 20_000, "validate_only": validate}
    found: list[dict[str, Any]] = side.call(CREATE, version, value)["topics"]
    return found


@pytest.mark.parametrize("entries", CREATIONS, ids=str)
@pytest.mark.parametrize("topic", ["new", "existing", "no topic", _MAY_NOT_BE_CREATED, "twice"])
@pytest.mark.parametrize("validate", [False, True])
def test_proxy_and_broker_respond_equally_to_topic_creations(
    pair: Pair, topic: str, entries: list[Entry], validate: bool
) -> None:
    existing = new_topic(pair)
    is_valid = all(value is not None for _, _, value in entries)
    for version in pair.versions(CREATE):
        if version == 0 and (validate or not is_valid):
            continue  # this version cannot only validate, so the proxy cannot ask the broker about invalid values first
        found = []
        for side in pair.sides:
            name = {"existing": existing, "new": f"new-{uuid.uuid4().hex}", "twice": f"new-{uuid.uuid4().hex}"}.get(
                topic, topic
            )
            topics = [topic_of(side, name, entries)] * (2 if topic == "twice" else 1)
            (result,) = created(side, version, *topics, validate=validate)
            settings = result.get("configs") or []
            kinds = {setting: kind for kind, setting in side.names.items()}
            found.append(
                (
                    result["error_code"],
                    side.without_names(result.get("error_message"), {name: "T"}),
                    {
                        kinds[each["name"]]: (
                            each["value"],
                            each["config_source"],
                            each["read_only"],
                            each["is_sensitive"],
                        )
                        for each in settings
                        if each["name"] in kinds and each["config_source"] == 1
                    },
                )
            )
            if result["error_code"] == 0 and not validate:
                expected = {kind: value for kind, _, value in entries}
                for kind in (PLAIN, LIST):
                    has_value(side, name, kind, expected.get(kind))
        assert found[1] == found[0]


def test_a_recreated_topic_has_no_settings(pair: Pair) -> None:
    for version in pair.versions(DELETE):
        name = f"again-{uuid.uuid4().hex}"
        proxy = pair.proxy
        (first,) = created(proxy, 7, topic_of(proxy, name, [(LIST, SET, "1:1")]))
        has_value(proxy, name, LIST, "1:1")
        by_id = [{"name": None, "topic_id": first["topic_id"]}]
        proxy.call(DELETE, version, {"topics": by_id, "topic_names": [name], "timeout_ms": 20_000})
        (second,) = created(proxy, 7, topic_of(proxy, name, []))

        assert (first["error_code"], second["error_code"]) == (0, 0)
        has_value(proxy, name, LIST, None)
