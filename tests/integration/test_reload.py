"""A changed file takes effect at once and completely, in all workers; a bad file changes nothing."""

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
import yaml

from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.integration.condition_views import wait_until_begun
from tests.integration.test_workers import workers_of
from tests.integration.topics import UNVALIDATED, create_topic
from tests.proxy.cli.test_commands import sluicegate, sluicegate_process
from tests.wire.batches import LZ4, Rec, batch
from tests.wire.raw_client import PRODUCE, RawClient, produce_body, topic_data

if TYPE_CHECKING:
    from playwright.sync_api import Page

AFTER = "message.timestamp.after.max.ms"
HOUR = 3_600_000


@pytest.fixture(params=[pytest.param(1, id="one process"), pytest.param(2, id="two workers", marks=pytest.mark.long)])
def proxy(request: pytest.FixtureRequest, kafka_bootstrap: str, tmp_path: Path) -> Iterator[ProxyProcess]:
    process = ProxyProcess(tmp_path, kafka_bootstrap, {"workers": request.param, "defaults": {AFTER: HOUR}})
    try:
        yield process.start()
    finally:
        process.stop()


def write_configuration(proxy: ProxyProcess, **changes: Any) -> None:
    """Replace the file atomically, as an editor or a ConfigMap does."""
    new = proxy.folder / "new.yaml"
    new.write_text(yaml.safe_dump(proxy.config | changes))
    new.replace(proxy.folder / "sluicegate.yaml")


def produce_codes_on_connections(proxy: ProxyProcess, topic: str, connections: int = 8) -> set[int]:
    """Return the codes of a batch two hours ahead, on enough connections to reach all workers."""
    found = set()
    for _ in range(connections):
        with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
            data = batch([Rec(time.time_ns() // 1_000_000 + 2 * HOUR)])
            response = client.produce(9, [topic_data(topic, (0, data))])
            assert isinstance(response, dict)
            found.add(response["responses"][0]["partition_responses"][0]["error_code"])
    return found


def wait_for_code(proxy: ProxyProcess, topic: str, code: int) -> None:
    eventually(lambda: produce_codes_on_connections(proxy, topic) == {code}, what=f"{code} from all workers")


@pytest.mark.long
def test_a_changed_file_takes_effect_soon_and_a_bad_one_changes_nothing(
    kafka_bootstrap: str, proxy: ProxyProcess
) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    assert produce_codes_on_connections(proxy, topic) == {32}

    write_configuration(proxy, defaults={AFTER: 3 * HOUR})
    wait_for_code(proxy, topic, 0)

    write_configuration(proxy, defaults={AFTER: "soon"})
    proxy.wait_for_line("configuration rejected")
    status, page = proxy.get("/readyz")
    assert (status, AFTER in page, "configuration_rejected: " in page) == (200, True, True)
    assert proxy.metric("sluicegate_config_reload_failures_total") == 1
    assert produce_codes_on_connections(proxy, topic) == {0}

    write_configuration(proxy, defaults={AFTER: HOUR})
    wait_for_code(proxy, topic, 32)
    assert proxy.get("/readyz")[1] == "serving\n"
    assert proxy.metric("sluicegate_config_reloads_total") == 2


def test_a_topic_named_in_the_new_file_gets_its_own_label(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    """No client requested its metadata, and observe mode sends no request to the cluster."""
    write_configuration(proxy, defaults={AFTER: HOUR, "mode": "observe"})
    wait_for_code(proxy, create_topic(kafka_bootstrap, UNVALIDATED), 0)
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    assert produce_codes_on_connections(proxy, topic) == {0}
    assert topic not in proxy.get("/metrics")[1]

    write_configuration(proxy, defaults={AFTER: HOUR, "mode": "observe"}, topics=[{"match": topic}])
    eventually(lambda: proxy.metric("sluicegate_config_reloads_total") == 2)

    def is_counted() -> bool:
        produce_codes_on_connections(proxy, topic, 1)
        return f'topic="{topic}"' in proxy.get("/metrics")[1]

    eventually(is_counted, what="the topic's label")


@pytest.mark.long
def test_topic_files_take_effect_when_added_changed_or_removed(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    team = proxy.folder / "policies" / "team.yaml"
    team.parent.mkdir()
    write_configuration(proxy, topic_files="policies/*.yaml")
    eventually(lambda: proxy.metric("sluicegate_config_reloads_total") == 1)
    assert produce_codes_on_connections(proxy, topic) == {32}

    team.write_text(yaml.safe_dump({"topics": [{"match": topic, "mode": "observe"}]}))
    wait_for_code(proxy, topic, 0)

    team.write_text("topics:\n  - match: x\n    mode: obsrve\n")
    proxy.wait_for_line("configuration rejected")
    assert f"{team}:3: topics[0].mode: expected 'reject', 'observe' or 'mark'" in proxy.get("/readyz")[1]
    assert produce_codes_on_connections(proxy, topic) == {0}

    team.write_text("topics: []\n")
    wait_for_code(proxy, topic, 32)
    assert proxy.get("/readyz")[1] == "serving\n"
    team.unlink()
    eventually(lambda: proxy.metric("sluicegate_config_reloads_total") == 4)
    assert proxy.get("/readyz")[1] == "serving\n"


@pytest.mark.long
def test_a_changed_symbolic_link_is_noticed(kafka_bootstrap: str, tmp_path: Path) -> None:
    """As in a mounted ConfigMap: file -> ..data/file, ..data -> a folder named by a time."""
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    process = ProxyProcess(tmp_path, kafka_bootstrap, {"defaults": {AFTER: HOUR}})
    for name, bound in (("..2026_1", HOUR), ("..2026_2", 3 * HOUR)):
        (tmp_path / name).mkdir()
        text = yaml.safe_dump(process.config | {"defaults": {AFTER: bound}})
        (tmp_path / name / "mounted.yaml").write_text(text)
    (tmp_path / "..data").symlink_to("..2026_1")
    (tmp_path / "mounted.yaml").symlink_to("..data/mounted.yaml")
    (tmp_path / "sluicegate.yaml").symlink_to("mounted.yaml")
    try:
        process.start()
        assert produce_codes_on_connections(process, topic) == {32}

        (tmp_path / "..data_tmp").symlink_to("..2026_2")
        (tmp_path / "..data_tmp").replace(tmp_path / "..data")

        wait_for_code(process, topic, 0)
    finally:
        process.stop()


def test_changes_that_need_a_restart_are_named_without_secrets(proxy: ProxyProcess) -> None:
    proxy.config["upstream"] |= {"sasl": {"mechanism": "PLAIN", "username": "u", "password": "hunter2"}}
    write_configuration(proxy, drain_timeout_seconds=3, limits={"max_in_flight": 7})

    line = proxy.wait_for_line("these changes need a restart")

    assert all(key in line for key in ("drain_timeout_seconds", "limits.max_in_flight", "upstream.sasl"))
    assert "hunter2" not in proxy.log()


def test_a_hangup_reloads_an_unchanged_file(proxy: ProxyProcess) -> None:
    assert proxy.process is not None
    proxy.process.send_signal(signal.SIGHUP)

    proxy.wait_for_line("configuration reloaded")
    eventually(lambda: proxy.metric("sluicegate_config_reloads_total") == 1)


@pytest.mark.long
def test_a_restarted_worker_has_the_newest_rules(kafka_bootstrap: str, tmp_path: Path) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    process = ProxyProcess(tmp_path, kafka_bootstrap, {"workers": 2, "defaults": {AFTER: HOUR}})
    try:
        process.start()
        write_configuration(process, defaults={AFTER: 3 * HOUR})
        wait_for_code(process, topic, 0)
        assert process.process is not None
        for worker in workers_of(process):
            os.kill(worker, signal.SIGKILL)
        eventually(lambda: process.metric("sluicegate_worker_restarts_total") == 2)
        eventually(lambda: process.metric("sluicegate_workers") == 2)

        assert produce_codes_on_connections(process, topic) == {0}
    finally:
        process.stop()


@pytest.mark.long
def test_reloads_under_load_drop_no_connection_and_lose_no_record(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    """Stateful producers write while the file changes repeatedly. Each file accepts records two hours ahead for one of
    two topics; a request for both topics is validated by one file.
    """
    topic, other = (create_topic(kafka_bootstrap, UNVALIDATED) for _ in range(2))
    errors: list[object] = []
    delivered: list[bytes] = []
    ended = threading.Event()

    def produce(name: bytes) -> None:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": proxy.bootstrap, "enable.idempotence": True, "linger.ms": 1}
        )
        number = 0
        while not ended.is_set():
            value = name + b"-%d" % number

            def on_delivery(error: object, _: object, value: bytes = value) -> None:
                (errors if error else delivered).append(error or value)

            producer.produce(topic, value, partition=0, on_delivery=on_delivery)
            producer.poll(0)
            ended.wait(0.002)  # 500 per second: several batches are in flight at each reload
            number += 1
        assert producer.flush(30) == 0

    def write_pairs(records: int) -> None:
        """Send requests, ten on each connection to reach both workers."""
        while not ended.is_set():
            with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
                data = batch([Rec(time.time_ns() // 1_000_000 + 2 * HOUR)] * records, LZ4)
                for _ in range(10):
                    response = client.produce(9, [topic_data(each, (1, data)) for each in (topic, other)])
                    assert isinstance(response, dict)
                    pairs.append(tuple(e["partition_responses"][0]["error_code"] for e in response["responses"]))
                    ended.wait(0.005)

    def accept_removal_for(which: int) -> None:
        """Write the file that accepts the removal for one topic, and wait for all workers."""
        hours = (3, 1) if which == 0 else (1, 3)
        write_configuration(
            proxy, topics=[{"match": t, AFTER: n * HOUR} for t, n in zip((topic, other), hours, strict=True)]
        )
        before = proxy.metric("sluicegate_config_reloads_total")
        eventually(lambda: proxy.metric("sluicegate_config_reloads_total") > before)

    pairs: list[tuple[int, ...]] = []
    accept_removal_for(0)
    wait_for_code(proxy, other, 32)
    wait_for_code(proxy, topic, 0)
    steps: list[Callable[[], None]] = [lambda: produce(b"a"), lambda: produce(b"b")]
    steps += [lambda: write_pairs(1), lambda: write_pairs(3000)]
    threads = [threading.Thread(target=step) for step in steps]
    for thread in threads:
        thread.start()
    for turn in range(6):
        accept_removal_for((turn + 1) % 2)
    ended.set()
    for thread in threads:
        thread.join(60)

    assert errors == []
    assert set(pairs) == {(0, 32), (32, 0)}
    with RawClient(kafka_bootstrap) as client:
        stored = set(re.findall(rb"[ab]-\d+", client.log_of(topic, 0)))
    assert len(delivered) > 100
    assert set(delivered) <= stored
    assert proxy.metric("sluicegate_protocol_errors_total") == 0


def test_a_reload_applies_exemptions_to_connected_clients(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    good = produce_body(9, [topic_data(topic, (0, batch([Rec(time.time_ns() // 1_000_000)])))])
    exempt = []
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        for reloads, who in enumerate(([], [{"client_id": "mirror"}], [])):
            if reloads:
                write_configuration(proxy, exempt=who)
                eventually(lambda n=reloads: proxy.metric("sluicegate_config_reloads_total") == n)
            for _ in range(5):
                client.send(PRODUCE, 9, good, "mirror")
                assert isinstance(client.receive(), bytes)
            exempt.append(proxy.metric("sluicegate_exempt_batches_total"))

    assert exempt == [0, 5, 5]


@pytest.mark.long
def test_suspended_enforcement_takes_effect_at_once_survives_a_bad_file_and_a_reload_and_ends(
    kafka_bootstrap: str, proxy: ProxyProcess, web_ui: "Page | None"
) -> None:
    topic, other = (create_topic(kafka_bootstrap, UNVALIDATED) for _ in range(2))
    admin = f"127.0.0.1:{proxy.config['admin']['listen'].rpartition(':')[2]}"
    assert produce_codes_on_connections(proxy, topic) == {32}

    not_allowed = sluicegate_process("suspend", topic, "--reason", "incident", "--admin", admin)
    assert (not_allowed.returncode, "403" in not_allowed.stderr) == (1, True)
    proxy.stop()
    token = proxy.folder / "token"
    token.write_text("sesame")
    proxy.config["admin"]["token_file"] = str(token)
    proxy.start()

    options = ("--admin", admin, "--token-file", str(token))
    suspended = sluicegate("suspend", topic, "--reason", "incident 7", "--for", "1h", *options)
    assert (suspended.returncode, "incident 7" in suspended.stdout) == (0, True), suspended.stderr
    wait_for_code(proxy, topic, 0)
    assert produce_codes_on_connections(proxy, other) == {32}
    detail = wait_until_begun(proxy, "enforcement_suspended", web_ui)
    assert detail.startswith(f"enforcement is suspended for {topic}")
    assert proxy.wait_for_violations(topic, 1)

    write_configuration(proxy, defaults={AFTER: "soon"})
    proxy.wait_for_line("configuration rejected")
    assert produce_codes_on_connections(proxy, topic) == {0}
    write_configuration(proxy, defaults={AFTER: HOUR}, log={"level": "info"})
    eventually(lambda: proxy.metric("sluicegate_config_reloads_total") >= 1)
    assert produce_codes_on_connections(proxy, topic) == {0}

    sluicegate("suspend", "--all", "--reason", "incident 8", "--for", "1s", *options)
    wait_for_code(proxy, topic, 0)
    assert sluicegate("resume", topic, *options).returncode == 0
    wait_for_code(proxy, topic, 32)
    wait_for_code(proxy, other, 32)
    eventually(lambda: proxy.get("/readyz")[1] == "serving\n")


def test_suspend_rejects_nonexistent_topics_and_lists_those_matching_a_pattern(
    kafka_bootstrap: str, proxy: ProxyProcess
) -> None:
    topic, other = (create_topic(kafka_bootstrap, UNVALIDATED, prefix="listed") for _ in range(2))
    token = proxy.folder / "token"
    token.write_text("sesame")
    proxy.stop()
    proxy.config["admin"]["token_file"] = str(token)
    proxy.start()
    options = ("--admin", proxy.admin.removeprefix("http://"), "--token-file", str(token))

    for command in (("suspend", "--reason", "incident"), ("resume",)):
        done = sluicegate(*command, topic + "x", *options)
        assert done.returncode == 1
        assert f"404 neither a policy nor the cluster has the topic {topic}x; did you mean {topic}" in done.stderr
    assert produce_codes_on_connections(proxy, topic) == {32}
    file = str(proxy.folder / "sluicegate.yaml")
    for asking in (("explain", file, topic + "x"), ("try", file, "--topic", topic + "x")):
        words = f"sluicegate {asking[0]}: neither a policy nor the cluster has the topic {topic}x; did you mean {topic}"
        assert words in sluicegate(*asking).stderr
    assert sluicegate("explain", file, topic).stderr == ""

    pattern = topic[:-1] + "*"
    unconfirmed = sluicegate("suspend", pattern, "--reason", "incident", *options)
    assert unconfirmed.returncode == 2
    assert unconfirmed.stdout.splitlines()[1:] == [f"  {topic}"]
    assert produce_codes_on_connections(proxy, topic) == {32}
    assert sluicegate("suspend", pattern, "--reason", "incident", "--yes", *options).returncode == 0
    wait_for_code(proxy, topic, 0)
    assert produce_codes_on_connections(proxy, other) == {32}
    resumed = sluicegate("resume", "listed-*", "--yes", *options)
    assert (
        resumed.returncode,
        f"  {other}" in resumed.stdout,
        "enforcement is not suspended anywhere" in resumed.stdout,
    ) == (
        0,
        True,
        True,
    )
    wait_for_code(proxy, topic, 32)
