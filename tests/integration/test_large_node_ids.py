"""Clients reach a broker with node id 2,000,000,000, by a map of ports and by name (SNI)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from tests.broker.certificates import Authority
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.oracle.kafka_java import KAFKA_NEW

_ID = 2_000_000_000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    kafka = Kafka(KAFKA_NEW, tmp_path_factory.mktemp("large"), first_id=_ID)
    try:
        yield kafka.start()
    finally:
        kafka.stop()


@pytest.mark.long
def test_clients_reach_a_broker_with_a_large_id(broker: Kafka, tmp_path: Path) -> None:
    proxy = ProxyProcess(tmp_path, broker.bootstrap)
    listen = proxy.config["listen"]
    listen["broker_port_map"] = {_ID: listen["broker_port_base"]}
    errors: list[object] = []
    try:
        proxy.start()
        metadata = AdminClient({"bootstrap.servers": proxy.bootstrap}).list_topics(timeout=20)
        assert list(metadata.brokers) == [_ID]
        producer = Producer({"bootstrap.servers": proxy.bootstrap})
        producer.produce("large", b"v", on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(60) == 0
    finally:
        proxy.stop()

    assert errors == [None]


@pytest.mark.long
def test_a_broker_with_a_large_id_is_advertised_by_its_name(broker: Kafka, tmp_path: Path) -> None:
    proxy, authority = ProxyProcess(tmp_path, broker.bootstrap), Authority(tmp_path)
    listen = proxy.config["listen"]
    del listen["broker_port_base"]
    own = authority.sign("sluicegate", f"b{_ID}.localhost", "127.0.0.1")
    listen |= {"tls": own.files, "broker_host": "b{node_id}.localhost"}
    settings = {"security.protocol": "SSL", "ssl.ca.location": str(authority.file)}
    try:
        proxy.start()
        settings["bootstrap.servers"] = proxy.bootstrap
        metadata = AdminClient(settings).list_topics(timeout=20)
        assert [each.host for each in metadata.brokers.values()] == [f"b{_ID}.localhost"]
    finally:
        proxy.stop()


@pytest.mark.long
def test_without_a_port_the_proxy_is_not_ready_and_names_the_broker(broker: Kafka, tmp_path: Path) -> None:
    proxy = ProxyProcess(tmp_path, broker.bootstrap)
    try:
        proxy.start(ready=False)
        eventually(lambda: "add its port to listen.broker_port_map" in proxy.get("/readyz")[1], what="the reason")
        assert proxy.get("/readyz")[0] == 503
    finally:
        proxy.stop()
