"""Listeners serve brokers by name and by port."""

import asyncio
import socket

import pytest
from structlog.testing import capture_logs

from sluicegate.config.listen import Listen
from sluicegate.config.tls import ListenTls
from sluicegate.config.values.address import HostPort
from sluicegate.proxy.network.listeners import MAX_BROKERS, Acceptor, CannotListen, Listeners, bind
from sluicegate.proxy.responses.broker_addresses import AddressBook


async def _accept(_node_id: int | None, listening: socket.socket) -> Acceptor:
    return listening


def unopened_listeners(broker_host: str) -> Listeners:
    tls = ListenTls(certificate_file="c", key_file="k")
    return Listeners(Listen(bootstrap=HostPort("127.0.0.1", 0), broker_host=broker_host, tls=tls), _accept, bind)


@pytest.mark.parametrize(
    ("asked", "node_id"),
    [
        ("broker-0.kafka.test", 0),
        ("BROKER-12.Kafka.Test.", 12),
        ("broker-2147483647.kafka.test", 2**31 - 1),
        ("broker-2147483648.kafka.test", None),
        ("broker-x.kafka.test", None),
        ("broker-1xkafka.test", None),
        ("bootstrap.kafka.test", None),
        ("evil-broker-1.kafka.test", None),
        (None, None),
    ],
)
def test_a_server_name_selects_the_broker_with_its_node_id(asked: str | None, node_id: int | None) -> None:
    assert unopened_listeners("broker-{node_id}.kafka.test").node_named(asked) == node_id


async def test_brokers_selected_by_server_name_share_one_advertised_port() -> None:
    named = unopened_listeners("b{node_id}.kafka.test")
    named.open_bootstrap()
    try:
        assert named.offer(5) == HostPort("b5.kafka.test", named.bootstrap_address.port)
        assert named.without_port([5]) == {}
    finally:
        await asyncio.wait_for(named.close(), 5)


class UnboundSocket:
    """Replaces a listening socket, of which a test would need thousands."""

    def __init__(self, address: HostPort) -> None:
        self._address = address

    def getsockname(self) -> tuple[str, int]:
        return self._address.host, self._address.port

    def close(self) -> None:
        pass


def open_listeners_from(base: int = 20_000) -> Listeners:
    listen = Listen(bootstrap=HostPort("127.0.0.1", 19999), broker_port_base=base)
    opened = Listeners(listen, _accept, UnboundSocket)
    opened.open_bootstrap()
    return opened


@pytest.mark.parametrize("ids", [range(-1, -3000, -1), range(50_000, 53_000), (-(2**31), 2**31 - 1, 70_000)])
async def test_node_ids_without_a_port_are_logged_once_for_each_kind(ids: range) -> None:
    opened = open_listeners_from()

    with capture_logs() as lines:
        assert [opened.offer(node_id) for node_id in ids] == [None] * len(ids)

    assert len(lines) == len({node_id < 0 for node_id in ids})
    assert lines[0]["broker"] == ids[0]
    assert opened.offer(7) == HostPort("127.0.0.1", 20_007)
    await opened.close()


async def test_brokers_with_impossible_ports_are_listed_as_without_port() -> None:
    opened = open_listeners_from()
    opened.offer(-5)
    opened.offer(7)
    assert opened.without_port([-5, 7]) == {}

    opened.offer(60_000)

    assert set(opened.without_port([7, 60_000])) == {60_000}
    await opened.close()


@pytest.mark.parametrize("by_name", [False, True])
async def test_endless_broker_ids_open_a_thousand_listeners_and_log_once(by_name: bool) -> None:
    opened = unopened_listeners("b{node_id}.test") if by_name else open_listeners_from()
    if by_name:
        opened.open_bootstrap()
    book = AddressBook({}, opened.offer)

    with capture_logs() as lines:
        offered = [book.advertise(node_id, "h", 9) for node_id in range(10_000)]

    assert sum(address is not None for address in offered) == MAX_BROKERS
    (told,) = [line for line in lines if line["log_level"] == "error"]
    assert f"more than {MAX_BROKERS} brokers" in told["reason"]
    assert book.advertise(3, "h", 9) == offered[3]  # existing listeners stay
    assert len(book.node_ids) <= 2 * MAX_BROKERS
    await opened.close()


async def test_taken_ports_count_against_the_listener_limit() -> None:
    def unbound_socket(address: HostPort) -> UnboundSocket:
        if address.port >= 20_000:
            raise CannotListen(address, OSError("taken"))
        return UnboundSocket(address)

    listen = Listen(bootstrap=HostPort("127.0.0.1", 19999), broker_port_base=20_000)
    opened = Listeners(listen, _accept, unbound_socket)
    opened.open_bootstrap()

    with capture_logs() as lines:
        for node_id in range(5_000):
            opened.offer(node_id)

    assert len(lines) == MAX_BROKERS + 1
    await opened.close()


async def test_largest_node_id_gets_unique_server_name() -> None:
    named = unopened_listeners("b{node_id}.kafka.test")
    named.open_bootstrap()
    try:
        assert named.offer(2**31 - 1) == HostPort("b2147483647.kafka.test", named.bootstrap_address.port)
        assert named.without_port([2**31 - 1]) == {}
    finally:
        await asyncio.wait_for(named.close(), 5)


async def test_mapped_brokers_use_mapped_ports_and_unmapped_ones_follow_base_port() -> None:
    listen = Listen(
        bootstrap=HostPort("127.0.0.1", 19999), broker_port_base=20_000, broker_port_map={2_000_000_000: 21_000}
    )
    opened = Listeners(listen, _accept, UnboundSocket)

    assert opened.offer(2_000_000_000) == HostPort("127.0.0.1", 21_000)
    assert opened.offer(7) == HostPort("127.0.0.1", 20_007)
    assert opened.offer(1000) is None
    assert "which broker 2000000000 already uses" in opened.without_port([7, 1000])[1000]
    await opened.close()
