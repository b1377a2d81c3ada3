"""Brokers by name."""

import asyncio
import socket

import pytest

from config.address import HostPort
from config.model import Listen
from proxy.listeners import Acceptor, Listeners, bind


async def _accept(_node_id: int | None, listening: socket.socket) -> Acceptor:
    return listening


def listeners(broker_host: str) -> Listeners:
    tls = {"certificate_file": "c", "key_file": "k"}
    return Listeners(Listen(bootstrap="127.0.0.1:0", broker_host=broker_host, tls=tls), _accept, bind)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "node_id"),
    [
        ("broker-0.kafka.test", 0),
        ("BROKER-12.Kafka.Test.", 12),
        ("broker-x.kafka.test", None),
        ("broker-1xkafka.test", None),
        ("bootstrap.kafka.test", None),
        ("evil-broker-1.kafka.test", None),
        (None, None),
    ],
)
def test_a_name_leads_to_the_broker_that_it_names(asked: str | None, node_id: int | None) -> None:
    assert listeners("broker-{node_id}.kafka.test").node_named(asked) == node_id


async def test_clients_are_told_each_brokers_name_and_the_one_port() -> None:
    named = listeners("b{node_id}.kafka.test")
    named.open_bootstrap()
    try:
        assert named.offer(5) == HostPort("b5.kafka.test", named.bootstrap_address.port)
        assert named.all_open
    finally:
        await asyncio.wait_for(named.close(), 5)
