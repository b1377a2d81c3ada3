"""A cluster that only takes OAUTHBEARER: the proxy's own requests, dead letters and events, by tokens of its own."""

import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.pipeline.bearers import CLIENT, SECRET, bearer_broker, token, token_endpoint
from tests.proxy.cli.test_commands import sluicegate

pytestmark = pytest.mark.long

_SESSION_MS = 6000
_DAY_MS = 86_400_000
_OLD = 2 * _DAY_MS


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    kafka = bearer_broker(tmp_path_factory.mktemp("bearer"), _SESSION_MS)
    try:
        yield kafka.start()
    finally:
        kafka.stop()


def _login(bootstrap: str, subject: str = "producer") -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (token(subject), time.time() + 3600),
    }


def _topics(broker: Kafka, *configs: dict[str, str]) -> list[str]:
    names = [f"t-{uuid.uuid4().hex[:8]}" for _ in configs]
    admin = AdminClient(_login(broker.bootstrap))
    new = [NewTopic(name, 1, 1, config=config) for name, config in zip(names, configs, strict=True)]
    for created in admin.create_topics(new).values():
        created.result(30)
    return names


def _outcome(proxy: ProxyProcess, topic: str, behind_ms: int = 0) -> str:
    outcomes: list[str] = []
    producer = confluent_kafka.Producer(_login(proxy.bootstrap) | {"linger.ms": 0, "message.timeout.ms": 15_000})
    producer.produce(
        topic,
        b"v",
        timestamp=time.time_ns() // 1_000_000 - behind_ms,
        on_delivery=lambda error, _: outcomes.append("ok" if error is None else error.name()),
    )
    assert producer.flush(30) == 0
    return outcomes[0]


def _count(broker: Kafka, topic: str) -> int:
    consumer = confluent_kafka.Consumer(_login(broker.bootstrap) | {"group.id": uuid.uuid4().hex})
    try:
        consumer.poll(0)  # serves the token
        return consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0), 30)[1]
    finally:
        consumer.close()


def _proxy(broker: Kafka, folder: Path, sasl: dict[str, Any], topic: str, dead: str, events: str) -> ProxyProcess:
    proxy = ProxyProcess(folder, broker.bootstrap, {"topics": [{"match": topic, "quarantine": dead}]})
    proxy.config["upstream"] |= {"sasl": {"mechanism": "OAUTHBEARER", **sasl}}
    proxy.config["violations"]["topic"] = events
    return proxy


def test_a_token_file_serves_settings_dead_letters_and_events(broker: Kafka, tmp_path: Path) -> None:
    """The cluster's own bound of the topic is what the record breaks, so the proxy has read the topic's settings."""
    topic, dead, events = _topics(broker, {"message.timestamp.before.max.ms": str(_DAY_MS)}, {}, {})
    file = tmp_path / "token"
    file.write_text(token("sluicegate", 3600) + "\n")
    proxy = _proxy(broker, tmp_path, {"token_file": str(file)}, topic, dead, events)
    try:
        proxy.start()
        assert _outcome(proxy, topic) == "ok"
        assert _outcome(proxy, topic, _OLD) == "INVALID_TIMESTAMP"
        assert _count(broker, dead) >= 1  # at least once
        eventually(lambda: _count(broker, events) >= 1, what="the event")

        expired = token("sluicegate", -30, marker="planted")
        file.write_text(expired)
        eventually(lambda: "own_login_rejected" in proxy.get("/readyz")[1], what="the condition")
        status, body = proxy.get("/readyz")
        assert status == 200
        assert "upstream.sasl has no token" in body
        assert "expired" in body
        assert _outcome(proxy, topic) == "ok", "clients have logins of their own"
        assert expired.split(".")[1] not in body + proxy.log() + json.dumps(proxy.violations())

        file.write_text(token("sluicegate", 3600))
        eventually(lambda: proxy.get("/readyz")[1] == "serving\n", what="the condition ends")
        eventually(lambda: _outcome(proxy, topic, _OLD) == "INVALID_TIMESTAMP", what="a dead letter again")
        assert _count(broker, dead) >= 2
    finally:
        proxy.stop()


def test_client_credentials_serve_the_same_and_a_failing_endpoint_is_named(broker: Kafka, tmp_path: Path) -> None:
    """Tokens last 20 s, so each is replaced while the proxy runs; the broker ends a session with its token."""
    topic, dead, events = _topics(broker, {"message.timestamp.before.max.ms": str(_DAY_MS)}, {}, {})
    (secret := tmp_path / "secret").write_text(SECRET)
    with token_endpoint() as endpoint:
        endpoint.lasts_seconds = 20
        oauth = {"token_url": endpoint.url, "client_id": CLIENT, "client_secret_file": str(secret), "scope": "kafka"}
        proxy = _proxy(broker, tmp_path, {"oauth": oauth, "extensions": {"pool": "a"}}, topic, dead, events)
        try:
            proxy.start()
            assert _outcome(proxy, topic) == "ok"
            assert _outcome(proxy, topic, _OLD) == "INVALID_TIMESTAMP"
            assert _count(broker, dead) >= 1  # at least once
            eventually(lambda: _count(broker, events) >= 1, what="the event")
            assert {each["scope"][0] for each in endpoint.asked} == {"kafka"}
            eventually(lambda: len(endpoint.given) >= 3, what="new tokens before the old ones expire")
            assert proxy.get("/readyz")[1] == "serving\n"
            stored = _count(broker, dead)
            eventually(
                lambda: _outcome(proxy, topic, _OLD) == "INVALID_TIMESTAMP", what="a dead letter with a new token"
            )
            assert _count(broker, dead) > stored

            endpoint.response = (503, {}, b"planted")
            eventually(lambda: "own_login_rejected" in proxy.get("/readyz")[1], what="the condition")
            status, body = proxy.get("/readyz")
            assert (
                status,
                f"upstream.sasl has no token: token endpoint {endpoint.url}: it fails (HTTP 503" in body,
            ) == (
                200,
                True,
            )
            doctor = sluicegate("doctor", "--config", str(tmp_path / "sluicegate.yaml")).stdout
            assert f"token endpoint {endpoint.url}: it fails (HTTP 503" in doctor
            assert _outcome(proxy, topic) == "ok", "clients have logins of their own"
            endpoint.response = None
            eventually(lambda: proxy.get("/readyz")[1] == "serving\n", what="the condition ends")
            shown = body + doctor + proxy.log() + json.dumps(proxy.violations())
            assert not any(each in shown for each in (SECRET, "planted", *endpoint.given))
        finally:
            proxy.stop()
