"""The proxy writes bad records and violation events to a broker that requires TLS, a login and permissions."""

import json
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.integration.secure_brokers import MECHANISMS, TOPIC, GuardedBroker, client_login, proxy_for, send

pytestmark = pytest.mark.long

NANOSECONDS = 1_000_000
WRONG = "swordfish"
KEPT_WITHIN = 4
"""How long the proxy tries to write a bad record (s). After that, the client has to retry."""


def create_topic_for_writer(guarded: GuardedBroker, writer: str | None) -> str:
    """Create a topic that only `writer` may write to."""
    name = f"dead-{uuid.uuid4().hex[:8]}"
    admin = guarded.admin()
    for future in admin.create_topics([NewTopic(name, 1, 1)]).values():
        future.result(30)
    if writer is not None:
        allow_write(guarded, name, writer)
    return name


def allow_write(guarded: GuardedBroker, topic: str, writer: str) -> None:
    admin = guarded.admin()
    for done in admin.create_acls([_right(AclBinding, topic, writer)]).values():
        done.result(30)


def revoke_write(guarded: GuardedBroker, topic: str, writer: str) -> None:
    admin = guarded.admin()
    for done in admin.delete_acls([_right(AclBindingFilter, topic, writer)]).values():
        done.result(30)


def _right(kind: Any, topic: str, who: str) -> Any:
    rights = (AclOperation.WRITE, AclPermissionType.ALLOW)
    return kind(ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, f"User:{who}", "*", *rights)


@contextmanager
def quarantining_proxy(
    guarded: GuardedBroker, folder: Path, dead: str, own: dict[str, str], events: str | None = None
) -> Iterator[ProxyProcess]:
    """Return a proxy that quarantines bad records of the guarded topic in `dead`, with the login `own`."""
    proxy = proxy_for(guarded, folder)
    proxy.config["topics"] = [{"match": TOPIC, "quarantine": dead}]
    proxy.config["limits"] = {"frame_timeout_seconds": KEPT_WITHIN}
    proxy.config["upstream"]["sasl"] = own
    if events is not None:
        proxy.config["violations"]["topic"] = events
    try:
        yield proxy.start()
    finally:
        proxy.stop()


def settings_of_alice(guarded: GuardedBroker, **settings: Any) -> dict[str, Any]:
    return client_login("alice", "secret") | {"ssl.ca.location": str(guarded.authority.file), **settings}


def read_records(guarded: GuardedBroker, topic: str) -> list[confluent_kafka.Message]:
    """Return all records of a topic."""
    consumer = confluent_kafka.Consumer(
        client_login("admin", "a")
        | {"bootstrap.servers": guarded.kafka.bootstrap, "ssl.ca.location": str(guarded.authority.file)}
        | {"group.id": uuid.uuid4().hex}
    )
    try:
        place = confluent_kafka.TopicPartition(topic, 0, 0)
        consumer.assign([place])
        _, end = consumer.get_watermark_offsets(place, 30)
        found: list[confluent_kafka.Message] = []
        until = time.monotonic() + 60
        while time.monotonic() < until and len(found) < end:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                found.append(message)
        return found
    finally:
        consumer.close()


def sluicegate_header(message: confluent_kafka.Message, name: str) -> str:
    return dict(message.headers() or [])[f"sluicegate.{name}"].decode()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_bad_records_and_events_arrive_over_tls_with_every_mechanism(
    guarded: GuardedBroker, tmp_path: Path, mechanism: str
) -> None:
    dead, events = create_topic_for_writer(guarded, "alice"), create_topic_for_writer(guarded, "alice")
    own = {"mechanism": mechanism, "username": "alice", "password": "secret"}
    now = time.time_ns() // NANOSECONDS

    with quarantining_proxy(guarded, tmp_path, dead, own, events) as proxy:
        times = [now, now * NANOSECONDS, now, 5, (now + 1) * NANOSECONDS]
        outcomes = send(proxy, settings_of_alice(guarded), *times)
        assert outcomes == ["ok", "INVALID_TIMESTAMP", "ok", "INVALID_TIMESTAMP", "INVALID_TIMESTAMP"]
        kept = read_records(guarded, dead)
        # Records may repeat, because a producer that logs in again while its record is being quarantined sends the
        # record again.
        stamps = list(dict.fromkeys(sluicegate_header(each, "timestamp") for each in kept))
        assert stamps == [str(times[i]) for i in (1, 3, 4)]
        assert {sluicegate_header(each, "principal") for each in kept} == {"User:alice"}
        assert proxy.metric("sluicegate_quarantined_records_total") >= 3
        eventually(lambda: len(read_records(guarded, events)) >= 3, what="three events")
        events = [json.loads(each.value() or b"") for each in read_records(guarded, events)]
        assert {each["mode"] for each in events} == {"quarantine"}
        assert {each["samples"][0]["timestamp"] for each in events} == {times[i] for i in (1, 3, 4)}


def test_a_wrong_password_loses_nothing_and_a_new_one_is_used_without_a_restart(
    guarded: GuardedBroker, tmp_path: Path
) -> None:
    dead, events = create_topic_for_writer(guarded, "alice"), create_topic_for_writer(guarded, "alice")
    password = tmp_path / "password"
    password.write_text("secret")
    own = {"mechanism": "PLAIN", "username": "alice", "password_file": str(password)}

    with quarantining_proxy(guarded, tmp_path, dead, own, events) as proxy:
        password.write_text(WRONG)
        assert send(proxy, settings_of_alice(guarded, **{"message.timeout.ms": 7000}), 5) == ["_MSG_TIMED_OUT"]
        line = proxy.wait_for_line("quarantine write failed")
        assert "authentication" in line.lower(), line
        assert send(proxy, settings_of_alice(guarded), time.time_ns() // NANOSECONDS) == ["ok"], (
            "other records are stored"
        )
        assert read_records(guarded, dead) == []

        password.write_text("secret")

        def is_validated() -> bool:
            return send(proxy, settings_of_alice(guarded), 7) == ["INVALID_TIMESTAMP"]

        eventually(is_validated, what="a verdict with the right password")
        assert "7" in {sluicegate_header(each, "timestamp") for each in read_records(guarded, dead)}
        eventually(lambda: read_records(guarded, events), what="events, too")
        for page in ("/metrics", "/readyz"):
            assert WRONG not in proxy.get(page)[1]
        assert WRONG not in proxy.log()
        assert WRONG not in json.dumps(proxy.violations())


def test_a_missing_permission_loses_nothing_and_is_used_when_granted(guarded: GuardedBroker, tmp_path: Path) -> None:
    dead, events = create_topic_for_writer(guarded, None), create_topic_for_writer(guarded, None)
    own = {"mechanism": "PLAIN", "username": "bob", "password": "secret"}
    rejected: Counter[str] = Counter()

    def wait_for_outcome(outcome: str) -> None:
        """Wait for an outcome; a change of permissions takes effect after a moment."""

        def has_outcome() -> bool:
            found = send(proxy, settings_of_alice(guarded, **{"message.timeout.ms": 2500}), 7)
            rejected.update(found)
            return found == [outcome]

        eventually(has_outcome, what=outcome)

    with quarantining_proxy(guarded, tmp_path, dead, own, events) as proxy:
        for _ in range(2):  # granted, revoked, and granted again
            wait_for_outcome("_MSG_TIMED_OUT")
            assert "authorization failed" in proxy.wait_for_line("quarantine write failed").lower()
            assert send(proxy, settings_of_alice(guarded), time.time_ns() // NANOSECONDS) == ["ok"]
            allow_write(guarded, dead, "bob")
            wait_for_outcome("INVALID_TIMESTAMP")
            assert len(read_records(guarded, dead)) >= rejected["INVALID_TIMESTAMP"] > 0
            revoke_write(guarded, dead, "bob")
            assert "authorization failed" in proxy.wait_for_line("violation events not sent").lower()
            assert proxy.metric("sluicegate_violation_topic_events_failed_total") > 0
            allow_write(guarded, events, "bob")
        eventually(lambda: read_records(guarded, events), what="events, too")
        assert all(line.startswith("{") for line in proxy.log().splitlines()), "a line from a library"
