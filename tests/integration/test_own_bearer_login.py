"""If a cluster accepts only OAUTHBEARER, the proxy sends its own requests, dead letters and events with its own
tokens.
"""

import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.integration.condition_views import wait_until_begun
from tests.integration.java import java_tool
from tests.pipeline.bearers import CLIENT, SECRET, bearer_broker, token_endpoint, unsecured_token
from tests.proxy.cli.test_commands import sluicegate_process

if TYPE_CHECKING:
    from subprocess import CompletedProcess

    from playwright.sync_api import Page

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
        "oauth_cb": lambda _: (unsecured_token(subject), time.time() + 3600),
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


def test_a_token_file_serves_settings_dead_letters_and_events(
    broker: Kafka, tmp_path: Path, web_ui: "Page | None"
) -> None:
    """The record exceeds a bound that only the cluster has, so its rejection shows that the proxy has read the topic's
    settings."""
    topic, dead, events = _topics(broker, {"message.timestamp.before.max.ms": str(_DAY_MS)}, {}, {})
    file = tmp_path / "token"
    file.write_text(unsecured_token("sluicegate", 3600) + "\n")
    proxy = _proxy(broker, tmp_path, {"token_file": str(file)}, topic, dead, events)
    try:
        proxy.start()
        assert _outcome(proxy, topic) == "ok"
        assert _outcome(proxy, topic, _OLD) == "INVALID_TIMESTAMP"
        assert _count(broker, dead) >= 1  # at-least-once delivery
        eventually(lambda: _count(broker, events) >= 1, what="the event")

        expired = unsecured_token("sluicegate", -30, marker="planted")
        file.write_text(expired)
        wait_until_begun(proxy, "proxy_login_rejected", web_ui)
        status, body = proxy.get("/readyz")
        assert status == 200
        assert "upstream.sasl provides no token" in body
        assert "expired" in body
        assert _outcome(proxy, topic) == "ok", "clients have logins of their own"
        assert expired.split(".")[1] not in body + proxy.log() + json.dumps(proxy.violations())

        file.write_text(unsecured_token("sluicegate", 3600))
        eventually(lambda: proxy.get("/readyz")[1] == "serving\n", what="the condition ends")
        eventually(lambda: _outcome(proxy, topic, _OLD) == "INVALID_TIMESTAMP", what="a dead letter again")
        assert _count(broker, dead) >= 2
    finally:
        proxy.stop()


_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
_CLIENTS = {
    "librdkafka": (
        "sasl.oauthbearer.method=oidc\nsasl.oauthbearer.client.id={id}\nsasl.oauthbearer.client.secret={secret}\n"
        "sasl.oauthbearer.scope=kafka\n"
    ),
    "java": (
        "sasl.login.callback.handler.class=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler\n"
        f'sasl.jaas.config={_MODULE} clientId="{{id}}" clientSecret="{{secret}}" scope="kafka";\n'
    ),
}


@pytest.mark.parametrize("library", _CLIENTS)
def test_a_clients_properties_become_the_proxys_own_login(broker: Kafka, tmp_path: Path, library: str) -> None:
    """The client itself can use the file, and doctor can use the configuration that bootstrap writes from the file."""
    (topic,) = _topics(broker, {})
    (secret := tmp_path / "secret").write_text(SECRET)
    (client := tmp_path / "client.properties").touch()
    written = tmp_path / "first.yaml"
    with token_endpoint() as endpoint:
        common = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        url = f"sasl.oauthbearer.token.endpoint.url={endpoint.url}\n"
        client.write_text(common + url + _CLIENTS[library].format(id=CLIENT, secret=SECRET))
        _is_understood_by(library, broker.bootstrap, client, endpoint.url, topic)
        by_client = len(endpoint.given)
        assert by_client > 0

        done = _ended("bootstrap", broker.bootstrap, "--client-config", str(client), "--output", str(written))

        assert done.stderr == ""
        assert len(endpoint.given) > by_client
        assert {each["scope"][0] for each in endpoint.asked} == {"kafka"}
        text = written.read_text()
        assert SECRET not in text
        assert endpoint.url in text
        assert "requires a login (SASL)" in sluicegate_process("doctor", "--config", str(written)).stdout
        asked = len(endpoint.given)
        logged_in = [_ended("doctor", "--config", str(written), "--client-config", str(client))]
        written.write_text(text.replace("  # sasl:", "  sasl:").replace("/run/secrets/kafka", str(secret)))
        logged_in.append(_ended("doctor", "--config", str(written)))
        assert len(endpoint.given) >= asked + 2
        for done in logged_in:
            assert "login" not in done.stdout, done.stdout

        client.write_text(client.read_text().replace(SECRET, "planted-and-wrong"))
        rejected = sluicegate_process("bootstrap", broker.bootstrap, "--client-config", str(client))
        assert rejected.returncode == 2
        assert f"token endpoint {endpoint.url}: " in rejected.stderr
        assert "planted" not in rejected.stderr


def _ended(*arguments: str) -> "CompletedProcess[str]":
    """Run a command, again if it has given up waiting for a broker or an endpoint, as it may on a busy machine."""
    done = sluicegate_process(*arguments)
    for _ in range(5):
        if "no response within" not in done.stdout + done.stderr:
            break
        done = sluicegate_process(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def _is_understood_by(library: str, bootstrap: str, file: Path, url: str, topic: str) -> None:
    """The client gets a token with these credentials. Java's client then requires a signature, which this broker would
    reject."""
    if library == "java":
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}"
        arguments = ("--bootstrap-server", bootstrap, "--command-config", str(file), "--list")
        with pytest.raises(AssertionError, match="Malformed JWT provided"):
            java_tool("org.apache.kafka.tools.TopicCommand", *arguments, options=(allowed,))
        return
    settings = dict(line.split("=", 1) for line in file.read_text().splitlines())
    assert topic in AdminClient({"bootstrap.servers": bootstrap, **settings}).list_topics(timeout=120).topics


def test_client_credentials_serve_settings_dead_letters_and_events_and_a_failing_endpoint_is_named(
    broker: Kafka, tmp_path: Path
) -> None:
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
            assert _count(broker, dead) >= 1  # at-least-once delivery
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
            eventually(lambda: "proxy_login_rejected" in proxy.get("/readyz")[1], what="the condition")
            status, body = proxy.get("/readyz")
            assert (
                status,
                f"upstream.sasl provides no token: token endpoint {endpoint.url}: the endpoint failed (HTTP "
                f"503" in body,
            ) == (
                200,
                True,
            )
            doctor = sluicegate_process("doctor", "--config", str(tmp_path / "sluicegate.yaml")).stdout
            assert f"token endpoint {endpoint.url}: the endpoint failed (HTTP 503" in doctor
            assert _outcome(proxy, topic) == "ok", "clients have logins of their own"
            endpoint.response = None
            eventually(lambda: proxy.get("/readyz")[1] == "serving\n", what="the condition ends")
            shown = body + doctor + proxy.log() + json.dumps(proxy.violations())
            assert not any(each in shown for each in (SECRET, "planted", *endpoint.given))
        finally:
            proxy.stop()
