"""Many changes of the shared state are made at three proxies of a cluster with ACLs, while proxies and a broker are
killed.

With `SLUICEGATE_THOROUGH`, there are 1,000 changes instead of 150.
"""

import json
import os
import random
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.broker.eventually import eventually
from tests.broker.fixtures import run_kafka
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.broker.security import plain_login, security_settings
from tests.faults.relay import DirectedFault, Direction, FaultyRelay, RelayFaultKind
from tests.integration.topics import UNVALIDATED, create_topic
from tests.oracle.kafka_java import KAFKA_NEW
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import topic_data
from tests.wire.sasl_client import SaslClient

pytestmark = pytest.mark.long

CHANGES = 1000 if os.environ.get("SLUICEGATE_THOROUGH") else 150
ROUNDS = 3  # of kills
HOUR_MS = 3_600_000
STATE = "sluicegate-state"
OWN_TOPICS = (STATE, f"{STATE}-history", f"{STATE}-presence")
UNCHANGED = "unchanged"
WRITERS = [[f"topic-{writer}-{i}" for i in range(4)] for writer in range(3)]
TOPICS = [topic for topics in WRITERS for topic in topics]
LOGINS = {"admin": "a", "proxies": "p", "alice": "s"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Yield three brokers. The proxies may write to their own topics, alice to all others. Broker 1 leads the state
    topic."""
    settings = {
        **security_settings("SASL_PLAINTEXT", "PLAIN", plain=plain_login(**LOGINS)),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
    }
    kafka = Kafka(KAFKA_NEW, tmp_path_factory.mktemp("cluster"), size=3, settings=settings)
    try:
        admin = AdminClient(client_login("admin") | {"bootstrap.servers": kafka.start().bootstrap})
        in_sync = {"min.insync.replicas": "2"}
        compacted = {"cleanup.policy": "compact", "min.compaction.lag.ms": "0", "segment.ms": "1000", **in_sync}
        logs = [NewTopic(name, 1, replica_assignment=[[1, 2, 3]], config=in_sync) for name in OWN_TOPICS[1:]]
        state = NewTopic(STATE, 1, replica_assignment=[[1, 2, 3]], config=compacted)
        # A broker that is never killed leads both partitions.
        others = [NewTopic(t, 2, replica_assignment=[[2, 3]] * 2, config=UNVALIDATED) for t in (*TOPICS, UNCHANGED)]
        for created in admin.create_topics([state, *logs, *others]).values():
            created.result(60)
        allowed = [("User:alice", ResourceType.TOPIC, "*", AclOperation.ALL)]
        rights = (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
        allowed += [("User:proxies", ResourceType.TOPIC, name, right) for name in OWN_TOPICS for right in rights]
        for done in admin.create_acls([acl_allowing(*each) for each in allowed]).values():
            done.result(60)
        yield kafka
    finally:
        kafka.stop()


def acl_allowing(who: str, kind: ResourceType, name: str, operation: AclOperation) -> AclBinding:
    return AclBinding(kind, name, ResourcePatternType.LITERAL, who, "*", operation, AclPermissionType.ALLOW)


def client_login(user: str) -> dict[str, str]:
    names = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    return names | {"sasl.username": user, "sasl.password": LOGINS[user]}


def proxy_with_state_topic(folder: Path, bootstrap: str, state: str, workers: int = 1) -> ProxyProcess:
    """Return a proxy with this state topic, which is not started."""
    folder.mkdir()
    (folder / "token").write_text("sesame")
    process = ProxyProcess(folder, bootstrap, {"defaults": {"message.timestamp.after.max.ms": HOUR_MS}})
    process.config |= {"workers": workers, "state": {"topic": state}}
    process.config["admin"]["token_file"] = str(folder / "token")
    return process


@pytest.fixture
def proxies(cluster: Kafka, tmp_path: Path) -> Iterator[list[ProxyProcess]]:
    """Yield three proxies, the last one with two workers."""
    made = [
        proxy_with_state_topic(tmp_path / f"proxy-{i}", cluster.bootstrap, STATE, workers)
        for i, workers in enumerate((1, 1, 2))
    ]
    for process in made:
        process.config["upstream"]["sasl"] = {"mechanism": "PLAIN", "username": "proxies", "password": "p"}
    try:
        for process in made:
            process.start()
        yield made
    finally:
        for process in made:
            process.stop()


def admin_response(proxy: ProxyProcess, path: str, post: bool = False, **query: str) -> dict[str, Any] | None:
    """Return the response of an admin path; None if it failed."""
    url = f"{proxy.admin}{path}?{urllib.parse.urlencode(query)}"
    asked = urllib.request.Request(url, method="POST" if post else "GET", headers={"Authorization": "Bearer sesame"})
    try:
        with urllib.request.urlopen(asked, timeout=30) as response:
            found: dict[str, Any] = json.load(response)
            return found
    except urllib.error.HTTPError as error:  # mostly 503
        with error:
            print(path, error.code, error.read().decode())
        return None
    except OSError:  # the proxy was killed
        return None


class Writer(threading.Thread):
    """Changes its own topics at any proxy, each change until a proxy has accepted it.

    `expected`: the reason of each topic's last change; None: resumed. `reasons`: of all accepted suspensions.
    """

    def __init__(self, number: int, proxies: list[ProxyProcess], over: threading.Event) -> None:
        super().__init__(daemon=True)
        self._number = number
        self._proxies = proxies
        self._over = over
        self.expected: dict[str, str | None] = {}
        self.reasons: set[str] = set()
        self.seconds: list[float] = []

    def run(self) -> None:
        rng = random.Random(self._number)
        for i in range(CHANGES // len(WRITERS)):
            topic, reason = rng.choice(WRITERS[self._number]), f"change {i} of {self._number}"
            suspends = rng.random() < 0.6
            query = {"topic": topic, **({"reason": reason, "seconds": "3600"} if suspends else {})}
            path = "/api/suspend" if suspends else "/api/resume"
            began = time.monotonic()
            while admin_response(rng.choice(self._proxies), path, post=True, **query) is None:
                if self._over.wait(0.1):
                    return
            self.seconds.append(time.monotonic() - began)
            self.expected[topic] = reason if suspends else None
            if suspends:
                self.reasons.add(reason)


class Producer(threading.Thread):
    """Sends requests with a bad batch for each of two partitions of one topic, and collects the pairs of errors."""

    def __init__(self, proxy: ProxyProcess, over: threading.Event) -> None:
        super().__init__(daemon=True)
        self._proxy = proxy
        self._over = over
        self.pairs: set[frozenset[int]] = set()

    def run(self) -> None:
        while not self._over.wait(0.02):
            with suppress(OSError), SaslClient(f"127.0.0.1:{self._proxy.broker_port(2)}") as client:
                if client.plain("alice", "s") is None:
                    self._send(client)

    def _send(self, client: SaslClient) -> None:
        client.metadata(*TOPICS, UNCHANGED)  # the proxy learns the topics' names from the response
        while not self._over.wait(0.02):
            topic = random.choice(TOPICS)
            data = batch([Rec(time.time_ns() // 1_000_000 + 2 * HOUR_MS)])
            response = client.produce(9, [topic_data(topic, (0, data), (1, data))])
            if not isinstance(response, dict):
                return
            (found,) = response["responses"]
            self.pairs.add(frozenset(each["error_code"] for each in found["partition_responses"]))


def reasons_of_suspended_topics(proxy: ProxyProcess, other: str = UNCHANGED) -> dict[str, str]:
    """Return the reasons of suspensions by topic, which the response to a change without effect lists."""
    found = eventually(lambda: admin_response(proxy, "/api/resume", post=True, topic=other, scope="proxy"))
    return {each["topic"]: each["reason"] for each in found["suspended"]}


def test_a_reconnected_proxy_applies_missed_changes_within_two_seconds(tmp_path: Path) -> None:
    kafka = Kafka(KAFKA_NEW, tmp_path / "kafka", relay_host="127.0.0.2")
    with closing(run_kafka(kafka)) as brokers, ExitStack() as stopped:
        (node,) = next(brokers).nodes
        topic, other = (create_topic(kafka.bootstrap, UNVALIDATED, 1) for _ in range(2))
        state = create_topic(kafka.bootstrap, {"cleanup.policy": "compact"}, 1)
        relay = stopped.enter_context(FaultyRelay("127.0.0.2", [node.relayed_port], seed=1))
        here = proxy_with_state_topic(tmp_path / "here", kafka.bootstrap, state)
        away = proxy_with_state_topic(tmp_path / "away", kafka.relayed_bootstrap, state)
        for proxy in (here, away):
            stopped.callback(proxy.stop)
            proxy.start()
        relay.begin(DirectedFault(RelayFaultKind.BLACKHOLE, Direction.BOTH))
        assert (
            admin_response(here, "/api/suspend", post=True, topic=topic, reason="cut off", seconds="3600") is not None
        )
        assert reasons_of_suspended_topics(away, other) == {}
        eventually(lambda: "state_unreadable" in away.get("/readyz")[1], what="state_unreadable")

        relay.heal()
        began = time.monotonic()
        eventually(lambda: reasons_of_suspended_topics(away, other) == {topic: "cut off"}, what="the suspension")
        print(f"in force {time.monotonic() - began:.2f} s after the return")
        assert time.monotonic() - began < 4  # 2 on an idle machine


def test_proxies_agree_after_many_changes_and_kills(cluster: Kafka, proxies: list[ProxyProcess]) -> None:
    over = threading.Event()
    writers = [Writer(number, proxies, over) for number in range(len(WRITERS))]
    producers = [Producer(proxy, over) for proxy in proxies]
    try:
        for thread in (*writers, *producers):
            thread.start()
        for round_ in range(1, ROUNDS + 1):
            share = round_ * CHANGES // (ROUNDS + 1)
            eventually(lambda share=share: sum(len(each.seconds) for each in writers) >= share, 600, f"{share} changes")
            if round_ == 2:
                cluster.kill(cluster.nodes[0])
            for proxy in proxies:
                proxy.kill()
                proxy.start()
            if round_ == 2:
                cluster.start_node(cluster.nodes[0])
        for writer in writers:
            writer.join(600)
            assert not writer.is_alive()
        last = {topic: reason for writer in writers for topic, reason in writer.expected.items()}
        expected = {topic: reason for topic, reason in last.items() if reason is not None}
        for proxy in proxies:
            eventually(
                lambda proxy=proxy: reasons_of_suspended_topics(proxy) == expected, 60, f"{expected} at {proxy.admin}"
            )
        fleet = eventually(lambda: admin_response(proxies[0], "/api/fleet"))
    finally:
        over.set()
        for thread in (*writers, *producers):
            thread.join(30)

    assert len(fleet["proxies"]) == len(proxies)  # each proxy keeps its name after a restart
    pairs = {pair for producer in producers for pair in producer.pairs}
    assert {frozenset({0}), frozenset({32})} <= pairs, pairs
    assert frozenset({0, 32}) not in pairs, "a request was validated with mixed states"
    history = eventually(
        lambda: (read := admin_response(proxies[0], "/api/changes", days="1")) and read["changes"] and read
    )
    texts = "\n".join(line["text"] for change in history["changes"] for line in change["changes"])
    lost = [reason for writer in writers for reason in writer.reasons if f"{reason}\n" not in f"{texts}\n"]
    assert (history["is_complete"], lost) == (True, [])
    slowest = sorted(seconds for writer in writers for seconds in writer.seconds)
    print(f"{len(slowest)} changes; half within {slowest[len(slowest) // 2]:.2f} s, the slowest {slowest[-1]:.1f} s")
