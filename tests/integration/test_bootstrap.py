"""`sluicegate bootstrap` writes a valid file with the topic settings of a real cluster."""

import subprocess
from pathlib import Path

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from sluicegate.config.loading import Loaded, load_file
from sluicegate.validation.from_keys import file_policies_of
from sluicegate.validation.rules.rule import Mode
from tests.broker.proxy_process import COMMAND
from tests.integration.secure_brokers import TOPIC, GuardedBroker
from tests.integration.topics import create_topic

KEYS = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms", "max.message.bytes", "cleanup.policy")


def run_bootstrap(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, "bootstrap", *arguments], capture_output=True, text=True, timeout=120, check=False)


def bootstrap_configuration(folder: Path, *arguments: str) -> Loaded:
    file = folder / "first.yaml"
    done = run_bootstrap(*arguments, "--output", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    checked = subprocess.run([COMMAND, "check", str(file)], capture_output=True, text=True, timeout=60, check=False)
    assert checked.returncode == 0, checked.stderr
    assert "warning" not in checked.stdout
    return load_file(file, {})


def test_bootstrap_writes_each_topics_settings_so_that_nothing_is_rejected(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    names = [create_topic(kafka_bootstrap, {"message.timestamp.after.max.ms": "7000"}, 1) for _ in range(3)]
    names.append(create_topic(kafka_bootstrap, {"cleanup.policy": "compact", "max.message.bytes": "12345"}, 1))
    names.append(create_topic(kafka_bootstrap, {"message.timestamp.type": "LogAppendTime"}, 2))

    loaded = bootstrap_configuration(tmp_path, kafka_bootstrap)
    lists = run_bootstrap(kafka_bootstrap, "--output", str(tmp_path / "again.yaml")).stdout

    assert f"brokers 1 at {kafka_bootstrap}; " in lists
    policies = file_policies_of(loaded.config)
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    asked = admin.describe_configs([ConfigResource(ResourceType.TOPIC, name) for name in names])
    for resource, future in asked.items():
        theirs, ours = future.result(30), policies.policy_of(resource.name)
        before, after, size, cleanup = (theirs[key].value for key in KEYS)
        assert (ours.before_max_ms, ours.after_max_ms, ours.max_message_bytes) == (int(before), int(after), int(size))
        assert ours.compacted is ("compact" in cleanup)
        assert ours.timestamp_type.value == theirs["message.timestamp.type"].value
        assert ours.mode is Mode.OBSERVE


def test_a_guarded_cluster_is_read_with_a_clients_settings_and_no_secret_is_written(
    guarded: GuardedBroker, tmp_path: Path
) -> None:
    client = tmp_path / "client.properties"
    client.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\nsasl.username=alice\nsasl.password=secret\n"
        f"ssl.ca.location={guarded.authority.file}\n"
    )

    rejected = run_bootstrap(guarded.kafka.bootstrap, "--client-config", str(client))
    client.write_text(
        client.read_text().replace("SCRAM-SHA-256", "PLAIN").replace("alice", "admin").replace("secret", "a")
    )
    loaded = bootstrap_configuration(tmp_path, guarded.kafka.bootstrap, "--client-config", str(client))

    assert rejected.returncode == 2  # alice may not read settings
    assert "TOPIC_AUTHORIZATION_FAILED" in rejected.stderr
    assert "secret" not in rejected.stderr
    assert loaded.config.upstream.tls is not None
    assert [str(address) for address in loaded.config.upstream.brokers.values()] == [guarded.kafka.bootstrap]
    assert "password:" not in (tmp_path / "first.yaml").read_text()
    assert file_policies_of(loaded.config).policy_of(TOPIC).after_max_ms == 2**63 - 1


def test_an_unreadable_cluster_is_reported_and_nothing_is_written(guarded: GuardedBroker, tmp_path: Path) -> None:
    file = tmp_path / "first.yaml"

    nobody = run_bootstrap("127.0.0.1:1", "--output", str(file))
    no_address = run_bootstrap("broker", "--output", str(file))
    no_tls = run_bootstrap(guarded.kafka.bootstrap, "--output", str(file))

    assert [done.returncode for done in (nobody, no_address, no_tls)] == [2, 2, 2]
    assert "127.0.0.1:1: " in nobody.stderr
    assert "expected host:port" in no_address.stderr
    assert "set upstream.tls" in no_tls.stderr
    assert not file.exists()


def test_an_existing_file_is_never_overwritten(kafka_bootstrap: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("mine")

    done = run_bootstrap(kafka_bootstrap, "--output", str(file))

    assert done.returncode == 2
    assert file.read_text() == "mine"
