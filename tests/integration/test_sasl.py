"""SASL messages pass unchanged: the broker sees the client's own login, and the proxy only learns the principal."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from sluicegate.protocol.messages.handshake import SASL_HANDSHAKE_REQUEST, SASL_HANDSHAKE_RESPONSE
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.broker.security import plain_login, security_settings
from tests.integration.topics import DEFAULTS, UNVALIDATED
from tests.oracle.kafka_java import KAFKA_NEW
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import CLOSED, PRODUCE, RawClient, produce_body, topic_data

SASL_SETTINGS = security_settings("SASL_PLAINTEXT", "PLAIN", plain=plain_login(admin="a", alice="secret-of-alice"))
SASL_HANDSHAKE = 17


@pytest.fixture(scope="module")
def guarded_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    kafka = Kafka(KAFKA_NEW, tmp_path_factory.mktemp("guarded"), settings=SASL_SETTINGS)
    try:
        yield kafka.start()
    finally:
        kafka.stop()


@pytest.fixture(scope="module")
def guarded_proxy(guarded_broker: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """Yield a proxy with the broker in its configuration, because brokers require a login for Metadata."""
    upstream = {"bootstrap": [guarded_broker.bootstrap], "brokers": {1: guarded_broker.bootstrap}}
    settings = {"upstream": upstream, "defaults": DEFAULTS}
    proxy = ProxyProcess(tmp_path_factory.mktemp("proxy"), guarded_broker.bootstrap, settings)
    proxy.config["listen"]["user_name_is_principal"] = ["PLAIN"]
    try:
        yield proxy.start()
    finally:
        proxy.stop()


def client_login(bootstrap: str, password: str = "secret-of-alice") -> dict[str, str]:
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": password,
    }


@pytest.fixture
def proxy_with_an_old_password(guarded_broker: Kafka, tmp_path: Path) -> Iterator[ProxyProcess]:
    proxy = ProxyProcess(tmp_path, guarded_broker.bootstrap, {"defaults": DEFAULTS})
    proxy.config["upstream"] = {
        "bootstrap": [guarded_broker.bootstrap],
        "brokers": {1: guarded_broker.bootstrap},
        "sasl": {"mechanism": "PLAIN", "username": "admin", "password": "the-one-before"},
    }
    try:
        yield proxy.start()
    finally:
        proxy.stop()


@pytest.fixture(scope="module")
def topic(guarded_broker: Kafka) -> str:
    admin = AdminClient(client_login(guarded_broker.bootstrap))
    for future in admin.create_topics([NewTopic("guarded", 1, 1, config=UNVALIDATED)]).values():
        future.result(30)
    return "guarded"


def test_a_client_logs_in_through_the_proxy_and_is_known_by_its_principal(
    guarded_proxy: ProxyProcess, topic: str
) -> None:
    outcomes: list[str] = []
    producer = Producer(client_login(guarded_proxy.bootstrap))
    for time_factor in (1, 1_000_000):
        timestamp = time.time_ns() // 1_000_000 * time_factor
        producer.produce(
            topic, b"v", timestamp=timestamp, on_delivery=lambda error, _: outcomes.append(str(error and error.code()))
        )
        assert producer.flush(30) == 0

    assert outcomes == ["None", "32"]
    eventually(lambda: guarded_proxy.violations_of(topic), what="the event")
    (event,) = guarded_proxy.violations_of(topic)
    assert event["principal"] == "User:alice"
    assert "secret-of-alice" not in guarded_proxy.log() + str(guarded_proxy.violations())


@pytest.mark.long
def test_a_wrong_password_gets_the_brokers_own_rejection(guarded_proxy: ProxyProcess) -> None:
    errors: list[str] = []
    settings = client_login(guarded_proxy.bootstrap, "wrong") | {"error_cb": lambda error: errors.append(str(error))}
    client = AdminClient(settings)

    with pytest.raises(KafkaException):
        client.list_topics(timeout=5)
    eventually(lambda: client.poll(0.1) or errors)

    assert "Authentication failed" in errors[0]
    counted = 'sluicegate_broker_errors_total{api="SaslAuthenticate",client_id="'
    assert any(
        line.startswith(counted) and 'error="SASL_AUTHENTICATION_FAILED"' in line
        for line in guarded_proxy.get("/metrics")[1].splitlines()
    )


@pytest.mark.parametrize(("password", "works"), [(b"secret-of-alice", True), (b"wrong", False)])
def test_raw_tokens_after_handshake_v0_are_forwarded(
    password: bytes, works: bool, guarded_proxy: ProxyProcess, topic: str
) -> None:
    seen = len(guarded_proxy.violations_of(topic))
    with RawClient(f"127.0.0.1:{guarded_proxy.broker_port(1)}") as client:
        body = SASL_HANDSHAKE_REQUEST.build({"mechanism": "PLAIN"}, 0)
        mechanisms = client.call(SASL_HANDSHAKE, 0, SASL_HANDSHAKE_RESPONSE, body)
        client.send_frame(b"\0alice\0" + password)
        token = client.receive()
        if not works:
            assert token == CLOSED
            return
        rejected = client.produce(9, [topic_data(topic, (0, batch([Rec(10**15)])))])

    assert mechanisms == {"error_code": 0, "mechanisms": ["PLAIN"]}
    assert token == b""
    assert rejected["responses"][0]["partition_responses"][0]["error_code"] == 32
    eventually(lambda: len(guarded_proxy.violations_of(topic)) > seen)
    assert guarded_proxy.violations_of(topic)[-1]["principal"] == "User:alice"


def test_a_client_with_a_wrong_password_does_not_get_the_principal(guarded_proxy: ProxyProcess, topic: str) -> None:
    """A wrong password and a request after it, sent before the broker's response."""
    seen = len(guarded_proxy.violations_of(topic))
    bad = produce_body(9, [topic_data(topic, (0, batch([Rec(10**15)])))])
    with RawClient(f"127.0.0.1:{guarded_proxy.broker_port(1)}") as client:
        client.send(SASL_HANDSHAKE, 0, SASL_HANDSHAKE_REQUEST.build({"mechanism": "PLAIN"}, 0))
        client.send_frame(b"\0alice\0wrong")
        client.send(PRODUCE, 9, bad)
        eventually(lambda: client.receive() == CLOSED)

    assert "User:alice" not in [event["principal"] for event in guarded_proxy.violations_of(topic)[seen:]]


def test_a_request_without_login_is_rejected_by_the_broker(guarded_proxy: ProxyProcess, topic: str) -> None:
    with RawClient(f"127.0.0.1:{guarded_proxy.broker_port(1)}") as client:
        good = batch([Rec(time.time_ns() // 1_000_000)])
        assert client.produce(9, [topic_data(topic, (0, good))]) == CLOSED


def test_a_rejected_login_of_the_proxy_blocks_no_client(proxy_with_an_old_password: ProxyProcess, topic: str) -> None:
    """Regression: with a rotated upstream.sasl.password /readyz returned 503 although every client produced."""
    proxy = proxy_with_an_old_password
    outcomes: list[object] = []
    producer = Producer(client_login(proxy.bootstrap))
    producer.produce(topic, b"v", on_delivery=lambda error, _: outcomes.append(error))

    assert producer.flush(30) == 0
    assert outcomes == [None]
    status, body = proxy.get("/readyz")
    assert status == 200
    assert body.startswith("needs attention\nproxy_login_rejected: ")
    assert "upstream.sasl is rejected" in body
    assert proxy.metric("sluicegate_upstream_logins_rejected_total") >= 1
    assert proxy.metric("sluicegate_ready") == 1
    line = proxy.wait_for_line("broker rejected proxy login")
    assert "the-one-before" not in line + body
