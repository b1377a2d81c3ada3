"""Several proxies of one cluster agree through a topic of that cluster."""

import json
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from sluicegate.proxy.state.change import Actor, StateChange, SuspendEnforcement, encode, key_of
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.integration.condition_views import wait_until_begun, wait_until_condition_ended
from tests.integration.topics import UNVALIDATED, create_topic
from tests.proxy.cli.test_commands import sluicegate, sluicegate_process
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import RawClient, topic_data

if TYPE_CHECKING:
    from playwright.sync_api import Page

HOUR_MS = 3_600_000
STATE = {"cleanup.policy": "compact", "min.compaction.lag.ms": "0"}

Gate = Callable[..., ProxyProcess]


def produce_code(proxy: ProxyProcess, topic: str) -> int:
    """Return the error of a batch two hours ahead."""
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        data = batch([Rec(time.time_ns() // 1_000_000 + 2 * HOUR_MS)])
        response = client.produce(9, [topic_data(topic, (0, data))])
    assert isinstance(response, dict)
    found: int = response["responses"][0]["partition_responses"][0]["error_code"]
    return found


def produce_codes_on_connections(proxy: ProxyProcess, topic: str) -> set[int]:
    """Return the errors of such batches on enough connections to reach all workers."""
    return {produce_code(proxy, topic) for _ in range(8)}


def wait_until_all_respond(proxies: list[ProxyProcess], topic: str, expected: int) -> None:
    eventually(
        lambda: all(produce_codes_on_connections(each, topic) == {expected} for each in proxies),
        what=f"{expected} at all proxies",
    )


def admin_options(proxy: ProxyProcess) -> tuple[str, ...]:
    return ("--admin", proxy.admin.removeprefix("http://"), "--token-file", str(proxy.config["admin"]["token_file"]))


def write_policy(bootstrap: str, topic: str, key: bytes, value: bytes | None) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, value, key)
    assert producer.flush(30) == 0


def delete_topic(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(30)


def create_state_topic(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1, config=STATE)])[topic].result(30)


def set_largest_batch(bootstrap: str, topic: str, size: int) -> None:
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(30)


def history_of_changes(proxy: ProxyProcess) -> list[dict[str, Any]]:
    """Return the history of all proxies, the newest change first."""
    done = sluicegate("history", "--json", *admin_options(proxy))
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["changes"]
    return found


@pytest.fixture
def state_topic(kafka_bootstrap: str) -> str:
    """Return the state topic, for which there is also a presence topic."""
    name = create_topic(kafka_bootstrap, STATE, partitions=1, prefix="state")
    create_state_topic(kafka_bootstrap, f"{name}-presence")
    return name


@pytest.fixture
def topic(kafka_bootstrap: str) -> str:
    return create_topic(kafka_bootstrap, UNVALIDATED)


@pytest.fixture
def make_proxy(kafka_bootstrap: str, state_topic: str, tmp_path: Path) -> Iterator[Gate]:
    """Yield a function that returns a proxy that uses the state topic and has not been started."""
    made: list[ProxyProcess] = []

    def make_unstarted_proxy(workers: int = 1, **state: Any) -> ProxyProcess:
        folder = tmp_path / f"gate-{len(made)}"
        folder.mkdir()
        token = folder / "token"
        token.write_text("sesame")
        process = ProxyProcess(folder, kafka_bootstrap, {"defaults": {"message.timestamp.after.max.ms": HOUR_MS}})
        process.config |= {"workers": workers, "state": {"topic": state_topic, **state}}
        process.config["admin"]["token_file"] = str(token)
        made.append(process)
        return process

    yield make_unstarted_proxy
    for process in made:
        process.stop()


def test_a_suspension_at_one_proxy_applies_to_all_and_survives_their_restarts(make_proxy: Gate, topic: str) -> None:
    one, two = make_proxy().start(), make_proxy(workers=2).start()
    assert produce_codes_on_connections(one, topic) == produce_codes_on_connections(two, topic) == {32}

    done = sluicegate("suspend", topic, "--reason", "incident 7", "--for", "1h", *admin_options(one))
    assert done.returncode == 0, done.stderr
    assert "incident 7 (all proxies, by an administrator at 127.0.0.1)" in done.stdout
    assert produce_codes_on_connections(one, topic) == {0}  # the change is in force when the command ends
    wait_until_all_respond([two], topic, 0)
    assert f"enforcement is suspended for {topic}" in two.get("/readyz")[1]

    for each in (one, two):
        each.kill()
    one.start()
    two.start()
    late = make_proxy().start()
    assert (
        produce_codes_on_connections(one, topic)
        == produce_codes_on_connections(two, topic)
        == produce_codes_on_connections(late, topic)
        == {0}
    )  # readiness means that the proxy has read the state

    resumed = sluicegate("resume", topic, *admin_options(two))
    assert (resumed.returncode, "enforcement is not suspended anywhere" in resumed.stdout) == (0, True), resumed.stderr
    assert produce_codes_on_connections(two, topic) == {32}
    wait_until_all_respond([one, late], topic, 32)


def test_a_suspension_is_in_force_everywhere_within_two_seconds(make_proxy: Gate, topic: str) -> None:
    one, two, late = make_proxy().start(), make_proxy(workers=2).start(), make_proxy()
    assert produce_codes_on_connections(one, topic) == produce_codes_on_connections(two, topic) == {32}
    seconds = []
    for command, expected in (("suspend", 0), ("resume", 32)) * 3:
        reason = ("--reason", "incident 7") if command == "suspend" else ()
        begun = time.monotonic()
        assert sluicegate(command, topic, *reason, *admin_options(one)).returncode == 0
        wait_until_all_respond([one, two], topic, expected)
        seconds.append(time.monotonic() - begun)
    assert min(seconds) < 2, seconds  # the test's machine may be busy for a while

    sluicegate("suspend", topic, "--reason", "incident 7", *admin_options(two))
    late.start()
    assert produce_codes_on_connections(late, topic) == {0}  # from its first batch on


def test_a_local_suspension_applies_to_one_proxy_and_ends_with_it(make_proxy: Gate, topic: str) -> None:
    one, two = make_proxy().start(), make_proxy().start()

    done = sluicegate("suspend", topic, "--reason", "incident 7", "--this-proxy", *admin_options(one))
    assert (done.returncode, "all proxies" in done.stdout) == (0, False), done.stderr
    assert produce_codes_on_connections(one, topic) == {0}
    sluicegate("suspend", "--all", "--reason", "ignored", "--for", "1s", *admin_options(two))
    wait_until_all_respond([two], topic, 32)

    one.kill()
    one.start()
    assert produce_codes_on_connections(one, topic) == {32}


def test_an_open_transaction_in_the_state_topic_delays_no_change(
    kafka_bootstrap: str, make_proxy: Gate, state_topic: str, topic: str
) -> None:
    """A record of a transaction takes effect when it is written, as each other record of the writer."""
    create_state_topic(kafka_bootstrap, f"{state_topic}-history")
    theirs = create_topic(kafka_bootstrap, UNVALIDATED)
    now_ms = time.time_ns() // 10**6
    operation = SuspendEnforcement(theirs, "of another writer", now_ms + HOUR_MS)
    change = StateChange(uuid.uuid4().hex, now_ms, Actor("another", "192.0.2.9"), "another", operation)
    writer = Producer({"bootstrap.servers": kafka_bootstrap, "transactional.id": state_topic})
    writer.init_transactions()
    writer.begin_transaction()
    for name in (state_topic, f"{state_topic}-history", f"{state_topic}-presence"):
        writer.produce(name, encode(change), key_of(operation))
    assert writer.flush(30) == 0

    one, two = make_proxy().start(), make_proxy(workers=2).start()
    assert produce_codes_on_connections(one, theirs) == produce_codes_on_connections(two, theirs) == {0}
    assert sluicegate("suspend", topic, "--reason", "incident 7", "--for", "1h", *admin_options(one)).returncode == 0
    wait_until_all_respond([one, two], topic, 0)
    eventually(lambda: [len(each["taken"]) for each in history_of_changes(two)] == [2], what="the history")
    of_fleet = [each.replace("--token", "--proxy-token") for each in admin_options(one)]
    eventually(lambda: sluicegate("fleet", *of_fleet).stdout.startswith("2 proxies\n"), what="both proxies")

    writer.abort_transaction()
    assert sluicegate("resume", "--all", *admin_options(two)).returncode == 0
    wait_until_all_respond([one, two], topic, 32)


@pytest.mark.long
def test_a_deleted_state_topic_changes_nothing_until_it_is_recreated(
    kafka_bootstrap: str, make_proxy: Gate, state_topic: str, topic: str, web_ui: "Page | None"
) -> None:
    one = make_proxy().start()
    sluicegate("suspend", topic, "--reason", "incident 7", "--for", "1h", *admin_options(one))
    delete_topic(kafka_bootstrap, state_topic)
    wait_until_begun(one, "state_unreadable", web_ui)
    assert one.get("/readyz")[0] == 200
    assert produce_codes_on_connections(one, topic) == {0}

    refused = sluicegate("resume", topic, *admin_options(one))
    assert (refused.returncode, "503" in refused.stderr, "only this proxy" in refused.stderr) == (1, True, True)
    mine = sluicegate("suspend", "--all", "--reason", "cut off", "--this-proxy", *admin_options(one))
    assert mine.returncode == 0, mine.stderr
    sluicegate("resume", "--all", "--this-proxy", *admin_options(one))
    assert produce_codes_on_connections(one, topic) == {0}

    create_state_topic(kafka_bootstrap, state_topic)
    eventually(lambda: one.get("/readyz")[1] == "serving\n", what="the state of the new topic")
    assert produce_codes_on_connections(one, topic) == {32}  # the new topic has no suspension


@pytest.mark.long
def test_a_change_that_cannot_be_written_changes_nothing(
    kafka_bootstrap: str, make_proxy: Gate, state_topic: str, topic: str
) -> None:
    one = make_proxy().start()
    set_largest_batch(kafka_bootstrap, state_topic, 10)  # bytes

    refused = sluicegate("suspend", topic, "--reason", "incident 7", "--for", "1h", *admin_options(one))
    assert (refused.returncode, "cannot be written" in refused.stderr) == (1, True), refused.stderr
    assert produce_codes_on_connections(one, topic) == {32}

    set_largest_batch(kafka_bootstrap, state_topic, 1_000_000)
    done = sluicegate("suspend", topic, "--reason", "incident 7", "--for", "1h", *admin_options(one))
    assert done.returncode == 0, done.stderr
    assert produce_codes_on_connections(one, topic) == {0}


@pytest.mark.long
def test_a_start_without_topic_or_snapshot_is_not_ready_and_one_with_a_snapshot_is(
    kafka_bootstrap: str, make_proxy: Gate, state_topic: str, topic: str, tmp_path: Path, web_ui: "Page | None"
) -> None:
    kept = make_proxy(snapshot_file=str(tmp_path / "state.json")).start()
    sluicegate("suspend", topic, "--reason", "incident 7", "--for", "1h", *admin_options(kept))
    delete_topic(kafka_bootstrap, state_topic)
    eventually(lambda: "state_unreadable" in kept.get("/readyz")[1], what="the condition")
    kept.kill()
    kept.start()

    assert "state_unreadable" in kept.get("/readyz")[1]
    assert produce_codes_on_connections(kept, topic) == {0}

    bare = make_proxy().start(ready=False)
    wait_until_begun(bare, "state_unknown", web_ui)
    assert bare.get("/readyz")[0] == 503
    create_state_topic(kafka_bootstrap, state_topic)
    eventually(lambda: bare.get("/readyz")[0] == 200, what="a known state")


@pytest.mark.long
def test_a_snapshot_that_cannot_be_written_is_a_condition_until_it_can(
    make_proxy: Gate, topic: str, tmp_path: Path, web_ui: "Page | None"
) -> None:
    folder = tmp_path / "snapshots"
    folder.mkdir()
    one = make_proxy(snapshot_file=str(folder / "state.json")).start()
    shutil.rmtree(folder)

    sluicegate("suspend", topic, "--reason", "incident 7", "--for", "1h", *admin_options(one))
    wait_until_begun(one, "state_snapshot_failing", web_ui)

    folder.mkdir()
    sluicegate("resume", topic, *admin_options(one))
    wait_until_condition_ended(one, "state_snapshot_failing")


@pytest.mark.long
def test_foreign_records_in_the_state_topic_are_reported_and_ignored(
    kafka_bootstrap: str, make_proxy: Gate, state_topic: str, topic: str, web_ui: "Page | None"
) -> None:
    one, two = make_proxy().start(), make_proxy().start()
    sluicegate("suspend", topic, "--reason", "incident 7", "--for", "1h", *admin_options(one))

    for value in (b"\x00garbage", b'{"version": 2}', None, b"x" * 100_000):
        write_policy(kafka_bootstrap, state_topic, uuid.uuid4().bytes, value)
    wait_until_begun(two, "state_record_invalid", web_ui)
    assert two.get("/readyz")[0] == 200
    assert produce_codes_on_connections(one, topic) == produce_codes_on_connections(two, topic) == {0}

    assert sluicegate("resume", topic, *admin_options(two)).returncode == 0
    wait_until_all_respond([one, two], topic, 32)


@pytest.mark.long
def test_doctor_reports_misconfigured_state_topics_and_unrestricted_writes(
    kafka_bootstrap: str, make_proxy: Gate, state_topic: str
) -> None:
    create_state_topic(kafka_bootstrap, f"{state_topic}-history")  # compacted, which is wrong for this topic
    delete_topic(kafka_bootstrap, f"{state_topic}-presence")
    one = make_proxy().start()

    done = sluicegate_process("doctor", "--config", str(one.folder / "sluicegate.yaml"), "--json")
    found = {each["about"]: each for each in json.loads(done.stdout)["findings"]}
    assert found["state.topic"]["level"] == "warning"  # one broker
    assert found["state.topic: who may write"]["level"] == "warning"
    assert "without an authorizer, every client may change it" in found["state.topic: who may write"]["found"]
    assert f"{state_topic}-history has cleanup.policy=compact" in done.stdout
    assert "history" in found["state.history_topic: who may write"]["found"]
    assert found["state.presence_topic"]["level"] == "failure"
    assert "message.timestamp.type=LogAppendTime" in found["state.presence_topic"]["advice"]
    fleet = sluicegate("fleet", *(each.replace("--token", "--proxy-token") for each in admin_options(one)))
    assert (fleet.returncode, "Unknown topic" in fleet.stderr) == (1, True)
    assert found["state.presence_topic"]["advice"] in fleet.stderr

    one.config["state"]["topic"] = "no-such-topic"
    file = one.folder / "other.yaml"
    file.write_text(yaml.safe_dump(one.config))
    done = sluicegate_process("doctor", "--config", str(file), "--json")
    found = {each["about"]: each for each in json.loads(done.stdout)["findings"]}
    assert found["state.topic"]["level"] == "failure"
    assert "create no-such-topic with --partitions 1" in found["state.topic"]["advice"]


def test_the_history_lists_each_change_with_its_author_and_the_proxies_that_applied_it(
    kafka_bootstrap: str, make_proxy: Gate, state_topic: str, topic: str
) -> None:
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    history = f"{state_topic}-history"
    admin.create_topics([NewTopic(history, 3, 1)])[history].result(30)
    one, two = make_proxy().start(), make_proxy(workers=2).start()

    sluicegate("suspend", topic, "--reason", "incident 7", "--for", "1h", *admin_options(one))
    sluicegate("resume", "--all", *admin_options(two))
    two.config["defaults"]["message.timestamp.after.max.ms"] = 3 * HOUR_MS
    (two.folder / "sluicegate.yaml").write_text(yaml.safe_dump(two.config))

    names = {each.bootstrap.rpartition(":")[2] for each in (one, two)}
    eventually(
        lambda: (
            [each["what"] for each in history_of_changes(one)] == ["policies", "resume all topics", f"suspend {topic}"]
        )
    )
    eventually(lambda: [len(each["taken"]) for each in history_of_changes(one)] == [1, 2, 2])
    policies, resumed, suspended = history_of_changes(one)
    assert {each["proxy"].rpartition(":")[2] for each in suspended["taken"]} == names
    assert suspended["actor"] == {"name": "an administrator", "address": "127.0.0.1"}
    assert suspended["changes"][0]["text"].endswith("incident 7")
    assert "incident 7" in resumed["changes"][1]["text"]  # the earlier suspension
    assert policies["actor"] == {"name": "policy files", "address": str(two.folder / "sluicegate.yaml")}
    assert [each["effect"] for each in policies["changes"]] == ["looser"]
