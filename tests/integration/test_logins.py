"""Logins pass through the proxy to a broker with authorization, which sees each client's own principal."""

import time

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
)

from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.integration.secure_brokers import (
    MECHANISMS,
    REAUTHENTICATE_MS,
    TOPIC,
    GuardedBroker,
    client_login,
    now_ms,
    send,
)


@pytest.fixture
def proxy(tls_proxy: ProxyProcess) -> ProxyProcess:
    return tls_proxy


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_broker_sees_each_clients_own_principal(
    guarded: GuardedBroker, proxy: ProxyProcess, mechanism: str
) -> None:
    trusting = {"ssl.ca.location": str(guarded.authority.file)}
    seen = len(proxy.violations_of(TOPIC))

    alice = send(proxy, client_login("alice", "secret", mechanism) | trusting, now_ms(), now_ms() * 1_000_000)
    bob = send(proxy, client_login("bob", "secret") | trusting, now_ms() * 1_000_000)

    assert alice == ["ok", "INVALID_TIMESTAMP"]
    assert bob == ["TOPIC_AUTHORIZATION_FAILED"]  # the broker's error comes before the proxy's
    eventually(lambda: len(proxy.violations_of(TOPIC)) == seen + 2, what="the events")
    assert [event["principal"] for event in proxy.violations_of(TOPIC)[seen:]] == ["User:alice", "User:bob"]
    assert "secret" not in proxy.log() + str(proxy.violations())


@pytest.mark.long
def test_a_wrong_password_is_rejected_by_the_broker(guarded: GuardedBroker, proxy: ProxyProcess) -> None:
    errors: list[KafkaError] = []
    trusting = {"ssl.ca.location": str(guarded.authority.file), "error_cb": errors.append}
    client = AdminClient(
        {"bootstrap.servers": proxy.bootstrap} | client_login("alice", "wrong", "SCRAM-SHA-256") | trusting
    )

    with pytest.raises(KafkaException):
        client.list_topics(timeout=5)
    eventually(lambda: client.poll(0.1) or errors)

    assert errors[0].code() == KafkaError._AUTHENTICATION
    eventually(lambda: "broker rejected client login" in proxy.log())
    assert "alice" in proxy.wait_for_line("broker rejected client login")


def test_clients_log_in_again_on_the_same_connection(guarded: GuardedBroker, proxy: ProxyProcess) -> None:
    """KIP-368: the broker closes a connection after its login expires; librdkafka logs in again in time."""
    outcomes: list[object] = []
    opened = proxy.metric("sluicegate_connections_total")
    producer = Producer(
        {"bootstrap.servers": proxy.bootstrap, "ssl.ca.location": str(guarded.authority.file)}
        | client_login("alice", "secret", "SCRAM-SHA-512")
    )
    end = time.monotonic() + 3 * REAUTHENTICATE_MS / 1000
    while time.monotonic() < end:
        producer.produce(TOPIC, b"v", on_delivery=lambda error, _: outcomes.append(error))
        assert producer.flush(30) == 0

    assert set(outcomes) == {None}
    assert proxy.metric("sluicegate_connections_total") - opened <= 3  # bootstrap and the broker, no reconnects
