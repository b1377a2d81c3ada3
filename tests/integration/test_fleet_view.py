"""Each proxy of a cluster shows all proxies of the cluster, which it reads from the presence topic."""

import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from sluicegate.proxy.state.presence import Presence, encode
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.integration.topics import create_topic
from tests.proxy.cli.test_commands import sluicegate

FOREIGN = Presence(
    "gate-9:19092", uuid.uuid4().hex, 0, 0, "192.0.2.9:9650", "9.9.9", "of another file", "serving", (), {}
)


@pytest.fixture
def proxies(kafka_bootstrap: str, tmp_path: Path) -> Iterator[tuple[ProxyProcess, ProxyProcess]]:
    """Yield two proxies, one with two workers, with topics that `bootstrap --state` creates."""
    state = f"state-{uuid.uuid4().hex[:12]}"
    made = []
    for number in (1, 2):
        folder = tmp_path / f"gate-{number}"
        folder.mkdir()
        process = ProxyProcess(folder, kafka_bootstrap)
        process.config |= {"workers": number, "state": {"topic": state}}
        made.append(process)
    file = tmp_path / "bootstrap.yaml"
    file.write_text(json.dumps(made[0].config))
    done = sluicegate("bootstrap", "--state", str(file))
    assert done.returncode == 0, done.stderr
    yield made[0], made[1]
    for process in made:
        process.stop()


def fleet_at(proxy: ProxyProcess) -> dict[str, Any]:
    status, text = proxy.get("/api/fleet")
    assert status == 200, text
    found: dict[str, Any] = json.loads(text)
    return found


def is_stale(proxy: ProxyProcess) -> dict[str, bool]:
    """Return whether each proxy that this one shows is stale, by the port of its name."""
    return {each["name"].rpartition(":")[2]: each["is_stale"] for each in fleet_at(proxy)["proxies"]}


def test_each_proxy_shows_the_whole_fleet_and_names_differences(
    kafka_bootstrap: str, proxies: tuple[ProxyProcess, ProxyProcess]
) -> None:
    one, two = proxies
    one.start()
    two.start()
    names = [each.bootstrap.rpartition(":")[2] for each in proxies]
    for each in proxies:
        eventually(lambda each=each: is_stale(each) == dict.fromkeys(names, False), what="both proxies")
        assert fleet_at(each)["findings"] == []
    eventually(lambda: {each["state"] for each in fleet_at(two)["proxies"]} == {"serving"}, what="both serving")
    (first,) = (each for each in fleet_at(two)["proxies"] if each["admin"] == one.admin.removeprefix("http://"))
    assert abs(first["clock_off_ms"]) < 5000

    producer = Producer({"bootstrap.servers": kafka_bootstrap})
    hour_ahead = time.time_ns() // 10**6 + 3_600_000
    twice = replace(FOREIGN, instance=uuid.uuid4().hex, time_ms=hour_ahead - 3_600_000)
    for record in (replace(FOREIGN, time_ms=hour_ahead), twice, replace(FOREIGN, time_ms=hour_ahead)):
        producer.produce(f"{one.config['state']['topic']}-presence", encode(record), record.name)
    assert producer.flush(30) == 0
    eventually(lambda: len(fleet_at(one)["findings"]) == 4, what="the findings")
    found = {each["code"]: each["text"] for each in fleet_at(one)["findings"]}
    assert "2 versions" in found["versions_differ"]
    assert "9.9.9: gate-9:19092" in found["versions_differ"]
    assert "2 policies" in found["policies_differ"]
    assert found["clock_off"] == "the clock of gate-9:19092 is +3600 s off the broker's"
    assert "gate-9:19092 is the name of 2 running proxies" in found["name_used_twice"]
    info = 'sluicegate_presence_info{policies="of another file",proxy="gate-9:19092",version="9.9.9"}'
    for each in proxies:
        eventually(lambda each=each: info in each.get("/metrics/fleet")[1], what="the metrics of the other")
        for code in found:
            assert f'sluicegate_presence_findings{{finding="{code}"}} 1.0\n' in each.get("/metrics/fleet")[1]

    (two_name,) = (each["name"] for each in fleet_at(one)["proxies"] if each["name"].endswith(names[1]))
    two.kill()
    killed = time.monotonic()
    eventually(lambda: is_stale(one)[names[1]], what="the stale proxy")
    assert 8 < time.monotonic() - killed < 25  # stale 15 s after an announcement that was at most 2 s old
    eventually(lambda: sum(is_stale(one).values()) == 2, what="the other stale ones")
    assert f'sluicegate_presence_serving{{proxy="{two_name}"}} 0.0\n' in one.get("/metrics/fleet")[1]
    listed = sluicegate("fleet", "--admin", one.admin.removeprefix("http://"))
    assert listed.returncode == 0, listed.stderr
    assert "4 proxies, 3 of them stale" in listed.stdout
    assert f"{names[1]}: stale since " in listed.stdout

    shown = sluicegate("top", "--fleet", "--once", one.admin.removeprefix("http://")).stdout
    assert "versions_differ" not in shown  # a stale proxy's different version is not a finding
    assert shown.count("stale") == 3

    two.start()
    eventually(lambda: is_stale(one)[names[1]] is False, what="the restarted proxy")
    assert len(fleet_at(one)["proxies"]) == 4  # now the difference is a finding


def test_a_proxy_that_cannot_announce_itself_has_a_condition(kafka_bootstrap: str, tmp_path: Path) -> None:
    state = create_topic(kafka_bootstrap, {"cleanup.policy": "compact"}, 1, prefix="state")
    proxy = ProxyProcess(tmp_path, kafka_bootstrap, {"state": {"topic": state}})
    try:
        proxy.start()
        lost = f"events_lost: state.presence_topic {state}-presence: "
        eventually(lambda: lost in proxy.get("/readyz")[1], what="events_lost")

        admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
        admin.create_topics([NewTopic(f"{state}-presence", 1, 1)])[f"{state}-presence"].result(30)
        eventually(lambda: "events_lost" not in proxy.get("/readyz")[1], what="its end")
    finally:
        proxy.stop()
