"""Clients spread over proxies that are added later, because old connections are closed between two requests."""

import threading
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.broker.proxy_process import ProxyProcess
from tests.integration.balancer import Balancer
from tests.integration.topics import UNVALIDATED, create_topic

_CLIENTS = 8


def _replica(folder: Path, kafka: str, host: str, port: int) -> ProxyProcess:
    """Return a proxy that listens at `host`, behind the balancer at 127.0.0.1 with the same ports."""
    folder.mkdir()
    limits = {"max_connection_age_seconds": 3}
    proxy = ProxyProcess(folder, kafka, {"limits": limits})
    proxy.config["listen"] |= {
        "bootstrap": f"{host}:{port}",
        "broker_port_base": port,
        "advertised_host": "127.0.0.1",
    }
    return proxy


def _opened(proxy: ProxyProcess) -> float:
    return proxy.metric("sluicegate_connections_total")


@pytest.mark.long
def test_producers_reach_a_second_proxy_and_lose_nothing(kafka_bootstrap: str, tmp_path: Path) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, 1)
    port = free_ports(2)
    first, second = (_replica(tmp_path / name, kafka_bootstrap, name, port) for name in ("127.0.0.2", "127.0.0.3"))
    errors: list[object] = []
    stop = threading.Event()

    def produce_until_stopped() -> None:
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "linger.ms": 0, "acks": "all"})
        while not stop.is_set():
            producer.produce(topic, b"v", on_delivery=lambda error, _: errors.append(error))
            producer.flush(30)
            stop.wait(0.05)

    threads = [threading.Thread(target=produce_until_stopped) for _ in range(_CLIENTS)]
    try:
        first.start()
        with Balancer("127.0.0.1", [port, port + 1], ["127.0.0.2", "127.0.0.3"]):
            for thread in threads:
                thread.start()
            eventually(lambda: len(errors) > _CLIENTS, what="the first records")
            second.start()
            eventually(lambda: _opened(second) >= _CLIENTS / 2, what="connections to the second proxy")
            stop.set()
            for thread in threads:
                thread.join()
        closed = first.metric("sluicegate_connections_closed_by_limit_total")
    finally:
        stop.set()
        first.stop()
        second.stop()

    assert set(errors) == {None}
    assert closed >= _CLIENTS
