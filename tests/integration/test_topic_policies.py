"""Policies are topic settings (`sluicegate.*`) that librdkafka's AdminClient manages through a proxy."""

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic
from kafka.admin import ConfigResource as PythonResource
from kafka.admin import ConfigResourceType as PythonResourceType
from kafka.admin import KafkaAdminClient

from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.integration.condition_views import wait_until_begun, wait_until_condition_ended
from tests.integration.test_shared_state import (
    HOUR_MS,
    STATE,
    admin_options,
    create_state_topic,
    delete_topic,
    produce_codes_on_connections,
    wait_until_all_respond,
)
from tests.integration.topics import UNVALIDATED, create_topic
from tests.oracle.java_program import java_command
from tests.oracle.kafka_java import CONFIG_COMMAND, KAFKA_NEW, kafka_folder
from tests.proxy.cli.test_commands import sluicegate, sluicegate_process

if TYPE_CHECKING:
    from playwright.sync_api import Page

IN_FUTURE = 32
DELEGATED = ["mode", "enforce.*", "owner", "owner.contact", "rules", "quarantine", "message.timestamp.after.max.ms"]
_ADMINS: dict[str, AdminClient] = {}
"""Kept, because a client that is garbage collected ends its requests."""
FLOOR = {"match": "floored-*", "message.timestamp.after.max.ms": HOUR_MS, "mode": "reject"}


def admin(bootstrap: str) -> AdminClient:
    return _ADMINS.setdefault(bootstrap, AdminClient({"bootstrap.servers": bootstrap, "socket.timeout.ms": 30_000}))


def alter(bootstrap: str, topic: str, validate_only: bool = False, **values: str | None) -> None:
    """Set settings of a topic, or delete those whose value is None. Raises KafkaException."""
    kinds = AlterConfigOpType
    entries = [
        ConfigEntry(name.replace("__", "."), value, incremental_operation=kinds.DELETE if value is None else kinds.SET)
        for name, value in values.items()
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    admin(bootstrap).incremental_alter_configs([resource], validate_only=validate_only)[resource].result(60)


def described(bootstrap: str, topic: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    found: dict[str, ConfigEntry] = admin(bootstrap).describe_configs([resource])[resource].result(60)
    return found


def set_values(bootstrap: str, topic: str) -> dict[str, str]:
    """Return the settings of ours that are set."""
    found = described(bootstrap, topic)
    return {name: its.value for name, its in found.items() if name.startswith("sluicegate.") and its.source == 1}


def refusal(change: Callable[[], Any]) -> tuple[str, str]:
    """Return the name and the text of the error of a change."""
    with pytest.raises(KafkaException) as raised:
        change()
    return raised.value.args[0].name(), raised.value.args[0].str()


@pytest.fixture(scope="module")
def state_topic(kafka_bootstrap: str) -> str:
    name = create_topic(kafka_bootstrap, STATE, partitions=1, prefix="state")
    for other in ("presence", "history"):
        create_state_topic(kafka_bootstrap, f"{name}-{other}")
    return name


@pytest.fixture
def topic(kafka_bootstrap: str) -> str:
    return create_topic(kafka_bootstrap, UNVALIDATED, 1, prefix="orders")


@pytest.fixture(scope="module")
def gates(
    kafka_bootstrap: str, state_topic: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ProxyProcess, ProxyProcess]]:
    """Yield a proxy with two workers, and a proxy with one."""
    made = []
    for workers in (2, 1):
        folder = tmp_path_factory.mktemp("gate")
        token = folder / "token"
        token.write_text("sesame")
        process = ProxyProcess(folder, kafka_bootstrap, {"defaults": {"message.timestamp.after.max.ms": HOUR_MS}})
        process.config |= {
            "workers": workers,
            "state": {"topic": state_topic},
            "floor": [FLOOR],
            "topics": [{"match": "orders-of-file-*", "mode": "reject"}],
            "topic_policies": [{"topics": ["orders-*", "floored-*"], "keys": DELEGATED}],
        }
        process.config["admin"]["token_file"] = str(token)
        made.append(process.start())
    yield made[0], made[1]
    for process in made:
        process.stop()


def test_a_setting_is_in_force_when_the_client_has_its_response(
    gates: tuple[ProxyProcess, ProxyProcess], topic: str
) -> None:
    one, other = gates
    assert produce_codes_on_connections(one, topic) == produce_codes_on_connections(other, topic) == {IN_FUTURE}

    alter(one.bootstrap, topic, sluicegate__mode="observe", sluicegate__owner="payments")

    assert produce_codes_on_connections(one, topic) == {0}  # all workers
    began = time.monotonic()
    wait_until_all_respond([other], topic, 0)
    assert time.monotonic() - began < 10  # two seconds, on an idle machine
    assert set_values(other.bootstrap, topic) == {"sluicegate.mode": "observe", "sluicegate.owner": "payments"}
    explained = sluicegate("explain", str(one.folder / "sluicegate.yaml"), topic)
    assert "observe  (sluicegate topic setting sluicegate.mode)" in explained.stdout, (
        explained.stdout + explained.stderr
    )
    event = one.violations_of(topic)[-1]
    assert event["owner"]["team"] == "payments"
    history = sluicegate("history", *admin_options(other))
    assert f"topic setting sluicegate.mode of {topic}" in history.stdout, history.stdout + history.stderr

    alter(one.bootstrap, topic, sluicegate__mode=None)
    assert produce_codes_on_connections(one, topic) == {IN_FUTURE}
    assert set_values(one.bootstrap, topic) == {"sluicegate.owner": "payments"}
    wait_until_all_respond([other], topic, IN_FUTURE)


def test_only_settings_of_kafka_are_forwarded_to_the_broker(
    gates: tuple[ProxyProcess, ProxyProcess], kafka_bootstrap: str, topic: str
) -> None:
    one, _ = gates
    alter(one.bootstrap, topic, sluicegate__mode="observe", retention__ms="7200000")

    found = described(one.bootstrap, topic)
    assert (found["retention.ms"].value, found["sluicegate.mode"].value) == ("7200000", "observe")
    at_the_broker = described(kafka_bootstrap, topic)
    assert at_the_broker["retention.ms"].value == "7200000"
    assert not [name for name in at_the_broker if name.startswith("sluicegate.")]


@pytest.mark.parametrize(
    ("values", "error", "text"),
    [
        ({"sluicegate.mode": "observ"}, "INVALID_CONFIG", "did you mean observe?"),
        ({"sluicegate.nope": "1"}, "INVALID_CONFIG", "no such key"),
        ({"sluicegate.framing": "strict"}, "POLICY_VIOLATION", "does not delegate this key"),
        ({"sluicegate.rules": "["}, "INVALID_CONFIG", "expected a JSON text"),
        ({"sluicegate.quarantine": "elsewhere"}, "INVALID_CONFIG", "beyond the topics of this delegation"),
        ({"sluicegate.mode": "observe", "retention.ms": "soon"}, "INVALID_CONFIG", "retention.ms"),
    ],
)
def test_an_invalid_setting_changes_nothing(
    gates: tuple[ProxyProcess, ProxyProcess], topic: str, values: dict[str, str], error: str, text: str
) -> None:
    one, _ = gates
    given = {name.replace(".", "__"): value for name, value in values.items()}

    name, said = refusal(lambda: alter(one.bootstrap, topic, **given))

    assert name == error
    assert text in said
    assert set_values(one.bootstrap, topic) == {}


def test_a_validate_only_alteration_stores_nothing(gates: tuple[ProxyProcess, ProxyProcess], topic: str) -> None:
    one, _ = gates
    alter(one.bootstrap, topic, validate_only=True, sluicegate__mode="observe")
    assert set_values(one.bootstrap, topic) == {}
    assert produce_codes_on_connections(one, topic) == {IN_FUTURE}


def test_topic_settings_cannot_lower_a_floor_or_an_entry_of_the_file(
    gates: tuple[ProxyProcess, ProxyProcess], kafka_bootstrap: str
) -> None:
    one, _ = gates
    floored = create_topic(kafka_bootstrap, UNVALIDATED, 1, prefix="floored")
    filed = create_topic(kafka_bootstrap, UNVALIDATED, 1, prefix="orders-of-file")
    for each in (floored, filed):
        alter(one.bootstrap, each, sluicegate__mode="observe")
        assert produce_codes_on_connections(one, each) == {IN_FUTURE}


def test_a_topic_is_created_with_settings_that_a_recreated_topic_does_not_inherit(
    gates: tuple[ProxyProcess, ProxyProcess], kafka_bootstrap: str, topic: str
) -> None:
    one, other = gates
    through = admin(one.bootstrap)
    name = f"{topic}-made"
    through.create_topics([NewTopic(name, 1, 1, config={**UNVALIDATED, "sluicegate.mode": "observe"})])[name].result(60)
    eventually(lambda: produce_codes_on_connections(one, name) == {0}, what="the topic")
    wait_until_all_respond([other], name, 0)

    through.delete_topics([name])[name].result(60)
    eventually(lambda: name not in admin(kafka_bootstrap).list_topics(timeout=30).topics, what="a deleted topic")
    admin(kafka_bootstrap).create_topics([NewTopic(name, 1, 1, config=UNVALIDATED)])[name].result(60)

    eventually(lambda: produce_codes_on_connections(one, name) == {IN_FUTURE}, what="a topic without settings")
    assert set_values(one.bootstrap, name) == {}


def test_a_setting_that_is_no_longer_delegated_is_a_condition_and_doctor_names_it(
    gates: tuple[ProxyProcess, ProxyProcess], topic: str, web_ui: "Page | None"
) -> None:
    one, other = gates
    alter(one.bootstrap, topic, sluicegate__mode="observe", sluicegate__owner="payments")
    wait_until_all_respond([other], topic, 0)
    file = other.folder / "sluicegate.yaml"
    before = file.read_text()
    narrower = {**other.config, "topic_policies": [{"topics": ["orders-*"], "keys": ["owner"]}]}
    file.write_text(yaml.safe_dump(narrower, sort_keys=False))
    try:
        wait_until_begun(other, "topic_setting_unusable", web_ui)
        assert f"topic settings of {topic} without effect: sluicegate.mode: " in other.get("/readyz")[1]
        assert produce_codes_on_connections(other, topic) == {IN_FUTURE}
        checked = sluicegate_process("doctor", "--config", str(file))
        assert f"{topic}: sluicegate.mode: topic_policies" in " ".join(checked.stdout.split()), checked.stdout
    finally:
        file.write_text(before)
    wait_until_condition_ended(other, "topic_setting_unusable")
    wait_until_all_respond([other], topic, 0)


def test_a_topic_deleted_directly_at_the_broker_loses_its_settings(
    gates: tuple[ProxyProcess, ProxyProcess], kafka_bootstrap: str, topic: str
) -> None:
    one, _ = gates
    alter(one.bootstrap, topic, sluicegate__mode="observe")

    delete_topic(kafka_bootstrap, topic)
    eventually(lambda: topic not in admin(kafka_bootstrap).list_topics(timeout=30).topics, what="a deleted topic")
    admin(kafka_bootstrap).create_topics([NewTopic(topic, 1, 1, config=UNVALIDATED)])[topic].result(60)

    eventually(lambda: set_values(one.bootstrap, topic) == {}, 60, what="a topic without settings")
    eventually(lambda: produce_codes_on_connections(one, topic) == {IN_FUTURE}, 30, what="the defaults")


def configs(bootstrap: str, topic: str, *arguments: str) -> str:
    """Run `kafka-configs.sh` of the newest Kafka, and return what it prints. Raises AssertionError if it fails."""
    command = java_command(kafka_folder(KAFKA_NEW), CONFIG_COMMAND)
    about = ["--bootstrap-server", bootstrap, "--entity-type", "topics", "--entity-name", topic]
    done = subprocess.run([*command, *about, *arguments], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_kafka_configs_sets_reads_and_deletes(
    gates: tuple[ProxyProcess, ProxyProcess], topic: str, tmp_path: Path
) -> None:
    one, _ = gates
    rules = '[{"name": "has-a-value", "value": {"required": true, "max_size": 1000}}]'
    file = tmp_path / "add.properties"
    file.write_text(f"sluicegate.rules={rules}\n")
    added = "sluicegate.mode=observe,sluicegate.enforce.clients=[billing-*,web-*],retention.ms=7200000"

    configs(one.bootstrap, topic, "--alter", "--add-config", added)
    configs(one.bootstrap, topic, "--alter", "--add-config-file", str(file))
    listed = configs(one.bootstrap, topic, "--describe")
    configs(one.bootstrap, topic, "--alter", "--delete-config", "sluicegate.mode,sluicegate.rules")
    left = configs(one.bootstrap, topic, "--describe")

    assert "sluicegate.mode=observe sensitive=false" in listed
    assert "sluicegate.enforce.clients=billing-*,web-*" in listed
    assert f"sluicegate.rules={rules}" in listed
    assert "retention.ms=7200000" in listed
    assert "sluicegate.mode=observe" not in left
    assert "sluicegate.rules=[" not in left
    assert "sluicegate.enforce.clients=billing-*,web-*" in left
    assert "sluicegate.mode" in configs(one.bootstrap, topic, "--describe", "--all")


@pytest.mark.long
@pytest.mark.parametrize("incremental", [True, False])
def test_kafka_python_sets_reads_and_deletes(
    gates: tuple[ProxyProcess, ProxyProcess], topic: str, incremental: bool
) -> None:
    """Its own check of names knows only those that DescribeConfigs lists, so it is off (`raise_on_unknown`)."""
    one, _ = gates
    client = KafkaAdminClient(bootstrap_servers=one.bootstrap)

    def change(**values: str) -> None:
        given = {name.replace("__", "."): value for name, value in values.items()}
        resource = PythonResource(PythonResourceType.TOPIC, topic, configs=given)
        done = client.alter_configs([resource], raise_on_unknown=False, incremental=incremental)
        assert done == {"topic": {topic: "OK"}}

    try:
        change(retention__ms="7200000", sluicegate__mode="observe")
        change(sluicegate__owner="payments")
        assert set_values(one.bootstrap, topic) == {"sluicegate.mode": "observe", "sluicegate.owner": "payments"}
        (found,) = client.describe_configs([PythonResource(PythonResourceType.TOPIC, topic)], config_filter="modified")[
            "topic"
        ].values()
        assert found["sluicegate.owner"]["value"] == "payments"
        refused = client.alter_configs(
            [PythonResource(PythonResourceType.TOPIC, topic, configs={"sluicegate.mode": "observ"})],
            raise_on_unknown=False,
            incremental=incremental,
        )
        assert "did you mean observe?" in refused["topic"][topic]
    finally:
        client.close()


def test_a_reconciliation_alters_only_differences_and_its_repetition_nothing(
    gates: tuple[ProxyProcess, ProxyProcess], topic: str
) -> None:
    """As Strimzi's topic operator does for a KafkaTopic: describe, compare, alter the difference."""
    one, other = gates
    wanted = {"retention.ms": "7200000", "sluicegate.mode": "observe", "sluicegate.enforce.percent": "10"}
    rounds = []
    for proxy in (one, one, other):
        found = {name: its.value for name, its in described(proxy.bootstrap, topic).items() if its.source == 1}
        difference: dict[str, str | None] = {name: v for name, v in wanted.items() if found.get(name) != v}
        difference |= {name: None for name in found if name not in wanted}
        rounds.append(set(difference))
        if difference:
            alter(proxy.bootstrap, topic, **{name.replace(".", "__"): value for name, value in difference.items()})
    assert rounds[0] >= set(wanted)
    assert rounds[1:] == [set(), set()]
