"""`sluicegate doctor` reports the state of real brokers, with and without problems."""

import json
import re
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka.admin import AdminClient, NewTopic

from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import parse_host_port
from sluicegate.proxy.doctor import clocks
from sluicegate.proxy.doctor.check_result import Level
from tests.broker.certificates import Authority
from tests.broker.fixtures import run_kafka
from tests.broker.kafka import Kafka
from tests.broker.ports import free_ports
from tests.broker.proxy_process import COMMAND, ProxyProcess
from tests.integration.secure_brokers import TOPIC, GuardedBroker
from tests.integration.topics import UNVALIDATED, create_topic
from tests.oracle.kafka_java import KAFKA_OLD

Found = dict[str, tuple[str, str]]


@pytest.fixture(scope="module")
def old_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    yield from run_kafka(Kafka(KAFKA_OLD, tmp_path_factory.mktemp("old")))


def config_in_front_of(bootstrap: str, **sections: Any) -> dict[str, Any]:
    first = free_ports(8)
    return {
        "upstream": {"bootstrap": [bootstrap]},
        "listen": {"bootstrap": f"127.0.0.1:{first}", "broker_port_base": first + 2},
        **sections,
    }


def run_doctor(folder: Path, config: dict[str, Any]) -> tuple[int, Found]:
    file = folder / "sluicegate.yaml"
    file.write_text(yaml.safe_dump(config))
    done = subprocess.run(
        [COMMAND, "doctor", "--config", str(file), "--json"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stderr == ""
    results = json.loads(done.stdout)["findings"]
    return done.returncode, {one["about"]: (one["level"], one["found"]) for one in results}


def doctor_advice(folder: Path, config: dict[str, Any], about: str) -> str:
    file = folder / "sluicegate.yaml"
    file.write_text(yaml.safe_dump(config))
    done = subprocess.run(
        [COMMAND, "doctor", "--config", str(file), "--json"], capture_output=True, timeout=120, check=False
    )
    return next(one["advice"] for one in json.loads(done.stdout)["findings"] if one["about"] == about)


def test_a_valid_configuration_has_no_finding_to_fix(kafka_bootstrap: str, tmp_path: Path) -> None:
    code, found = run_doctor(tmp_path, config_in_front_of(kafka_bootstrap))

    assert code == 0
    assert not [about for about, (level, _) in found.items() if level in ("failure", "not checked")]
    assert found[f"broker at {kafka_bootstrap}"] == ("ok", "responds; brokers in the cluster: 1")
    assert "Kafka 4.0 or later" in found["broker 1"][1]
    assert "leads here" in found["advertised address"][1]
    assert " this machine, within " in found["clock"][1]


@pytest.mark.long
def test_an_older_release_is_recognised_by_its_api_versions(old_broker: Kafka, tmp_path: Path) -> None:
    code, found = run_doctor(tmp_path, config_in_front_of(old_broker.bootstrap))

    assert code == 0
    assert "older than Kafka 4.0" in found["broker 1"][1]
    assert found["clock"][0] == "ok"


async def test_doctor_reports_a_clock_that_is_five_seconds_off(kafka_bootstrap: str) -> None:
    address = parse_host_port(kafka_bootstrap)
    upstream = Upstream(bootstrap=(address,))

    behind = await clocks.check_clock(upstream, None, address, lambda: time.time_ns() - 5_500_000_000)
    far_behind = await clocks.check_clock(upstream, None, address, lambda: time.time_ns() - 7_230_000_000_000)
    right = await clocks.check_clock(upstream, None, address)

    assert behind.level is Level.WARNING
    assert re.search(r" is 5 s \d+ ms ahead of this machine, within \d+ ms$", behind.found)
    assert far_behind.level is Level.FAILURE
    assert " is 2 h ahead of this machine, within " in far_behind.found
    assert right.level is Level.OK


def test_a_topics_limits_are_compared_with_the_files(kafka_bootstrap: str, tmp_path: Path) -> None:
    topic = f"doctor-{uuid.uuid4()}"
    settings = {"message.timestamp.before.max.ms": "60000", "cleanup.policy": "compact"}
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    created = admin.create_topics([NewTopic(topic, 1, 1, config=settings)])
    created[topic].result(30)
    entry = {"match": topic, "message.timestamp.before.max.ms": "1d"}

    code, found = run_doctor(tmp_path, config_in_front_of(kafka_bootstrap, topics=[entry, {"match": f"{topic}-gone"}]))

    assert code == 0
    level, message = found[f"topic {topic}"]
    assert level == "warning"
    assert message == (
        "message.timestamp.before.max.ms is 1 d (86400000 ms) in the file, 1 min (60000 ms) on the cluster, which is "
        "stricter and applies"
    )
    assert found["topics[1]"][0] == "warning"


def test_an_advertised_address_of_a_broker_is_reported(kafka_bootstrap: str, tmp_path: Path) -> None:
    broker = parse_host_port(kafka_bootstrap)
    config = config_in_front_of(kafka_bootstrap)
    config["listen"] |= {"broker_port_base": broker.port - 1, "advertised_host": "localhost"}

    code, found = run_doctor(tmp_path, config)

    assert code == 1
    level, message = found["advertised address"]
    assert level == "failure"
    assert message == f"localhost:{broker.port}, advertised for broker 1, is a broker's own address"
    assert found["port of broker 1"][0] == "failure"


def test_an_advertised_host_that_does_not_reach_the_proxy_is_reported(kafka_bootstrap: str, tmp_path: Path) -> None:
    config = config_in_front_of(kafka_bootstrap)
    config["listen"]["advertised_host"] = "127.0.0.3"  # another address of this machine, on which nothing listens

    code, found = run_doctor(tmp_path, config)

    level, message = found["advertised address"]
    assert (code, level) == (0, "warning")
    assert "does not lead here from this machine: " in message


@pytest.mark.long
def test_a_proxy_that_is_running_already_is_recognised(kafka_bootstrap: str, tmp_path: Path) -> None:
    proxy = ProxyProcess(tmp_path, kafka_bootstrap).start()
    try:
        code, found = run_doctor(tmp_path, proxy.config)
        stranger = config_in_front_of(kafka_bootstrap)
        stranger["listen"]["bootstrap"] = proxy.bootstrap
        other_code, other = run_doctor(tmp_path, stranger)
    finally:
        proxy.stop()

    assert code == 0
    assert "in use by a running proxy of this configuration" in found["listen.bootstrap"][1]
    assert "is a running proxy of this configuration" in found["advertised address"][1]
    assert other_code == 1
    assert "this configuration advertises" in other["advertised address"][1]


@pytest.mark.long
def test_missing_permissions_of_the_proxys_login_are_reported(guarded: GuardedBroker, tmp_path: Path) -> None:
    config = config_in_front_of(guarded.kafka.bootstrap, violations={"topic": TOPIC})
    tls = {"ca_file": str(guarded.authority.file)}

    def config_with_login(user: str, password: str) -> tuple[int, Found]:
        sasl = {"mechanism": "PLAIN", "username": user, "password": password}
        config["upstream"] = {"bootstrap": [guarded.kafka.bootstrap], "tls": tls, "sasl": sasl}
        return run_doctor(tmp_path, config)

    all_of_it, bobs, nobodys = (
        config_with_login("admin", "a"),
        config_with_login("bob", "secret"),
        config_with_login("bob", "wrong"),
    )

    assert all_of_it[0] == 0
    assert all_of_it[1]["violations.topic"] == ("ok", f"may write to topic {TOPIC}")
    assert bobs[0] == 1
    assert bobs[1]["violations.topic"] == ("failure", f"WRITE is not allowed on topic {TOPIC}")
    assert "DESCRIBE_CONFIGS is not allowed" in bobs[1]["permissions"][1]
    assert bobs[1]["clock"][0] == "not checked"
    assert "CLUSTER_AUTHORIZATION_FAILED" in bobs[1]["clock"][1]
    level, message = nobodys[1][f"broker at {guarded.kafka.bootstrap}"]
    assert level == "failure"
    assert nobodys[0] == 1
    assert "upstream.sasl is rejected" in message
    assert "wrong" not in message
    assert nobodys[1]["permissions"][0] == "not checked"


@pytest.mark.long
def test_a_port_with_another_protocol_is_reported(guarded: GuardedBroker, kafka_bootstrap: str, tmp_path: Path) -> None:
    tls = {"ca_file": str(guarded.authority.file)}
    plain, encrypted = config_in_front_of(guarded.kafka.bootstrap), config_in_front_of(kafka_bootstrap)
    encrypted["upstream"]["tls"] = tls

    codes = [run_doctor(tmp_path, config)[0] for config in (plain, encrypted)]
    remedies = [
        doctor_advice(tmp_path, config, f"broker at {address}")
        for config, address in ((plain, guarded.kafka.bootstrap), (encrypted, kafka_bootstrap))
    ]

    assert codes == [2, 2]
    assert remedies == ["set upstream.tls", "remove upstream.tls, or use the brokers' TLS listener"]


def test_a_mechanism_that_the_broker_does_not_offer_is_reported(kafka_bootstrap: str, tmp_path: Path) -> None:
    config = config_in_front_of(kafka_bootstrap)
    config["upstream"]["sasl"] = {"mechanism": "SCRAM-SHA-512", "username": "a", "password": "b"}

    code, found = run_doctor(tmp_path, config)

    level, message = found[f"broker at {kafka_bootstrap}"]
    assert (code, level) == (1, "failure")
    assert "the broker offers no SASL here" in message


@pytest.mark.long
def test_a_controller_as_upstream_is_named(old_broker: Kafka, tmp_path: Path) -> None:
    controller = f"127.0.0.1:{old_broker.nodes[0].controller_port}"

    code, found = run_doctor(tmp_path, config_in_front_of(controller))

    assert code == 2
    assert found[f"broker at {controller}"] == ("failure", "is a KRaft controller, not a broker")


def test_a_brokers_port_that_is_the_bootstrap_port_is_reported(kafka_bootstrap: str, tmp_path: Path) -> None:
    config = config_in_front_of(kafka_bootstrap)
    port = int(config["listen"]["bootstrap"].rpartition(":")[2])
    config["listen"]["broker_port_base"] = port - 1

    code, found = run_doctor(tmp_path, config)

    assert code == 1
    reason = f"broker 1 would need port {port}, which listen.bootstrap already uses"
    assert found["listen.broker_port_base"] == ("failure", reason)


@pytest.mark.long
def test_a_running_proxy_with_tls_listeners_is_recognised(kafka_bootstrap: str, tmp_path: Path) -> None:
    own = Authority(tmp_path).sign("proxy").files
    proxy = ProxyProcess(tmp_path, kafka_bootstrap)
    proxy.config["listen"]["tls"] = own
    proxy.start()
    try:
        code, found = run_doctor(tmp_path, proxy.config)
    finally:
        proxy.stop()

    assert code == 0, found
    assert "is a running proxy of this configuration" in found["advertised address"][1]
    assert found["port of broker 1"][0] == "ok"
    assert not [level for level, _ in found.values() if level == "failure"]


def run_check(folder: Path, config: dict[str, Any], *options: str) -> "subprocess.CompletedProcess[str]":
    file = folder / "sluicegate.yaml"
    file.write_text(yaml.safe_dump(config, sort_keys=False))
    return subprocess.run(
        [COMMAND, "check", "--cluster", str(file), *options], capture_output=True, text=True, timeout=120, check=False
    )


def test_check_compares_each_pattern_with_the_topics_of_the_cluster(kafka_bootstrap: str, tmp_path: Path) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    nowhere = f"nowhere-{uuid.uuid4().hex}*"
    config = config_in_front_of(
        kafka_bootstrap,
        topics=[{"match": topic}, {"match": topic + "x"}],
        floor=[{"match": nowhere}],
        exempt=[{"client_id": "a", "topics": [topic, nowhere]}],
        quotas=[{"name": "q", "topic": nowhere, "bytes_per_second": 1000}],
    )
    file = f"{tmp_path}/sluicegate.yaml"

    done = run_check(tmp_path, config)

    assert (done.returncode, done.stderr) == (0, "")
    found = [line for line in done.stdout.splitlines() if line.startswith("warning: ") and "in the cluster" in line]
    advice = "; check its spelling with sluicegate explain FILE TOPIC"
    lines = Path(file).read_text().splitlines()
    line_of = {text: number for number, text in reversed(list(enumerate(lines, 1)))}
    assert found == [
        f"warning: topics[1]: {file}:{line_of[f'- match: {topic}x']}: {topic}x is not the first match of any topic in "
        f"the "
        f"cluster; did you mean {topic}?{advice}",
        f"warning: floor[0]: {file}:{line_of[f'- match: {nowhere}']}: {nowhere} is not the first match of any topic "
        f"in the "
        f"cluster{advice}",
        f"warning: exempt[0].topics: {file}:{line_of['  topics:']}: {nowhere} matches no topic in the cluster{advice}",
        f"warning: quotas[0].topic: {file}:{line_of[f'  topic: {nowhere}']}: {nowhere} matches no topic in the "
        f"cluster{advice}",
    ]
    assert done.stdout.endswith(f"{file}: ok\n")
    strict = run_check(tmp_path, config, "--strict")
    assert (strict.returncode, "warnings (--strict)" in strict.stderr) == (1, True)


def test_check_fails_for_a_missing_quarantine_topic_and_an_unreachable_cluster(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    done = run_check(
        tmp_path, config_in_front_of(kafka_bootstrap, topics=[{"match": "a", "quarantine": "no-such-topic"}])
    )
    assert (done.returncode, "topic no-such-topic does not exist" in done.stderr) == (1, True)

    done = run_check(tmp_path, config_in_front_of(f"127.0.0.1:{free_ports(1)}"))
    assert (done.returncode, "not checked: topics: " in done.stderr, "Connection refused" in done.stderr) == (
        1,
        True,
        True,
    )
