"""Behind a load balancer with PROXY protocol v2, events, logs and limits use the clients' addresses."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.proxy_process import ProxyProcess
from tests.integration.test_produce import bad_batch_now
from tests.integration.topics import DEFAULTS, UNVALIDATED, create_topic
from tests.wire.raw_client import CLOSED, RawClient, topic_data

INVALID_TIMESTAMP = 32


def proxy_header(address: str, port: int) -> bytes:
    """Return a PROXY header, version 2, TCP over IPv4 (HAProxy's specification)."""
    both = (
        socket.inet_aton(address) + socket.inet_aton("127.0.0.1") + port.to_bytes(2, "big") + (9092).to_bytes(2, "big")
    )
    return bytes.fromhex("0d0a0d0a000d0a515549540a 2111 000c") + both


def produce_through_balancer(proxy: ProxyProcess, topic: str, header: bytes) -> object:
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        client.socket.sendall(header)
        response = client.produce(9, [topic_data(topic, (0, bad_batch_now()))])
    return response["responses"][0]["partition_responses"][0]["error_code"] if isinstance(response, dict) else response


@pytest.fixture(params=["required", "optional"])
def proxy(request: pytest.FixtureRequest, kafka_bootstrap: str, tmp_path: Path) -> Iterator[ProxyProcess]:
    proxy = ProxyProcess(tmp_path, kafka_bootstrap, {"defaults": DEFAULTS})
    proxy.config["listen"] |= {"proxy_protocol": request.param, "proxy_protocol_from": ["127.0.0.0/8"]}
    proxy.config["limits"] = {"max_connections_per_address": 1}
    try:
        yield proxy.start()
    finally:
        proxy.stop()


def test_the_client_address_is_taken_from_the_load_balancer(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)

    assert produce_through_balancer(proxy, topic, proxy_header("192.0.2.7", 56324)) == INVALID_TIMESTAMP

    (event,) = proxy.wait_for_violations(topic, 1)
    assert event["client_address"] == "192.0.2.7:56324"
    assert "192.0.2.7:56324" in proxy.wait_for_line("rejected")


def test_limits_by_address_apply_to_the_clients_address(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    with RawClient(proxy.bootstrap) as first, RawClient(proxy.bootstrap) as other, RawClient(proxy.bootstrap) as second:
        for client, address in ((first, "192.0.2.7"), (other, "192.0.2.8"), (second, "192.0.2.7")):
            client.socket.sendall(proxy_header(address, 1))
        assert first.metadata()["brokers"]
        assert other.metadata()["brokers"]
        assert second.receive(10) == CLOSED

    proxy.wait_for_line("max_connections_per_address")


def test_a_client_that_bypasses_the_load_balancer_is_rejected(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED)
    is_required = proxy.config["listen"]["proxy_protocol"] == "required"

    assert produce_through_balancer(proxy, topic, b"") == (CLOSED if is_required else INVALID_TIMESTAMP)

    if is_required:
        assert "configure the load balancer to send one" in proxy.wait_for_line("connection rejected")
    else:
        assert proxy.wait_for_violations(topic, 1)[0]["client_address"].startswith("127.0.0.1:")


def test_allowed_addresses_apply_to_the_client_and_not_to_the_load_balancer(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    proxy = ProxyProcess(tmp_path, kafka_bootstrap, {"defaults": DEFAULTS})
    proxy.config["listen"] |= {
        "proxy_protocol": "optional",
        "proxy_protocol_from": ["127.0.0.0/8"],
        "allowed_addresses": ["192.0.2.0/24"],
    }
    try:
        proxy.start()
        with RawClient(proxy.bootstrap) as expected, RawClient(proxy.bootstrap) as other:
            expected.socket.sendall(proxy_header("192.0.2.7", 1))
            assert expected.metadata()["brokers"]
            other.socket.sendall(proxy_header("198.51.100.7", 1))
            assert other.receive(10) == CLOSED
        proxy.wait_for_line("listen.allowed_addresses: add it if it may connect")
        rejected = proxy.metric("sluicegate_connections_rejected_total")
    finally:
        proxy.stop()

    assert rejected == 1
