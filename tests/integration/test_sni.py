"""Clients reach brokers by name (SNI), with one TLS port and a host name for each broker."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiokafka
import pytest

from tests.broker.certificates import Authority, Certificate
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.integration.aio import run_and_collect_sockets
from tests.integration.java import java_tool
from tests.integration.topics import DEFAULTS
from tests.wire.raw_client import RawClient


@pytest.fixture
def named_proxy(
    mutual_broker: tuple[Kafka, Authority, Certificate], tmp_path: Path
) -> Iterator[tuple[ProxyProcess, Authority]]:
    """Yield a proxy with one TLS port, for which broker N is broker-N.brokers.test."""
    kafka, authority, certificate = mutual_broker
    proxy = ProxyProcess(tmp_path, kafka.bootstrap, {"defaults": DEFAULTS})
    proxy.config["upstream"]["tls"] = {"ca_file": str(authority.file), **certificate.files}
    own = authority.sign("sluicegate", "*.brokers.test", "bootstrap.test")
    listen = proxy.config["listen"]
    del listen["broker_port_base"]
    listen |= {"tls": own.files, "broker_host": "broker-{node_id}.brokers.test", "advertised_host": "bootstrap.test"}
    try:
        yield proxy.start(), authority
    finally:
        proxy.stop()


@pytest.mark.long
def test_java_finds_each_broker_by_its_name_on_one_port(
    named_proxy: tuple[ProxyProcess, Authority], tmp_path: Path
) -> None:
    proxy, authority = named_proxy
    port = proxy.bootstrap.rpartition(":")[2]
    hosts, settings = tmp_path / "hosts", tmp_path / "client.properties"
    hosts.write_text("127.0.0.1 bootstrap.test broker-1.brokers.test\n")
    settings.write_text(f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={authority.file}\n")
    options = [f"-Djdk.net.hosts.file={hosts}"]
    servers = ("--bootstrap-server", f"bootstrap.test:{port}")

    java_tool(
        "org.apache.kafka.tools.TopicCommand",
        *(*servers, "--command-config", str(settings), "--create", "--topic", "named", "--partitions", "1"),
        options=options,
    )
    java_tool(
        "org.apache.kafka.tools.ConsoleProducer",
        *(*servers, "--topic", "named", "--command-config", str(settings)),
        stdin="one\ntwo\n",
        options=options,
    )
    read = java_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *(*servers, "--topic", "named", "--command-config", str(settings), "--from-beginning", "--max-messages", "2"),
        options=options,
    )

    assert read.split() == ["one", "two"]


def test_aiokafka_finds_each_broker_by_its_name_on_one_port(
    named_proxy: tuple[ProxyProcess, Authority], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, authority = named_proxy
    port = int(proxy.bootstrap.rpartition(":")[2])
    asked = resolve_test_names(monkeypatch)

    async def produce() -> object:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=f"bootstrap.test:{port}",
            security_protocol="SSL",
            ssl_context=ssl.create_default_context(cafile=authority.file),
        )
        await producer.start()
        try:
            return await producer.send_and_wait("aio", b"v")
        finally:
            await producer.stop()

    run_and_collect_sockets(produce())

    assert asked == {"bootstrap.test", "broker-1.brokers.test"}


def resolve_test_names(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Resolve names that end in .test to this machine; return the set of resolved names."""
    asked: set[str] = set()
    real = socket.getaddrinfo

    def resolve_to_loopback(host: Any, *rest: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if isinstance(name, str) and name.endswith(".test"):
            asked.add(name)
            host = "127.0.0.1"
        return real(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve_to_loopback)
    return asked


@pytest.mark.parametrize(("name", "served"), [("broker-1.brokers.test", True), ("broker-7.brokers.test", False)])
def test_a_server_name_selects_its_broker_or_is_rejected(
    name: str, served: bool, named_proxy: tuple[ProxyProcess, Authority]
) -> None:
    proxy, authority = named_proxy
    context = ssl.create_default_context(cafile=authority.file)

    with RawClient(proxy.bootstrap) as client:
        client.socket = context.wrap_socket(client.socket, server_hostname=name)
        assert isinstance(client.api_versions(), dict) == served

    if not served:
        eventually(lambda: "no address is known" in proxy.log())
