"""The broker addresses that the proxy learns from responses."""

import pytest

from sluicegate.config.values.address import HostPort
from sluicegate.proxy.responses.broker_addresses import AddressBook

OURS = HostPort("proxy", 19101)


@pytest.fixture
def book() -> AddressBook:
    return AddressBook({1: HostPort("configured", 9092)}, lambda _: OURS)


@pytest.mark.parametrize("host", ["b-1.kafka.test", "10.0.0.1", "fe80::1", "b.kafka.test.", "under_score", "a" * 63])
def test_a_host_is_learnt(host: str, book: AddressBook) -> None:
    assert book.advertise(7, host, 9092) == OURS
    assert book.upstream_of(7) == HostPort(host, 9092)


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("", 9092),
        ("a..b", 9092),
        (".", 9092),
        ("a" * 64, 9092),
        ("a." * 128, 9092),
        ("new\nline", 9092),
        ("\x1b[2J", 9092),
        ("nul\0", 9092),
        ("bröker", 9092),
        ("\ud800", 9092),
        ("host", 0),
        ("host", -1),
        ("host", 65_536),
        ("host", 2**31 - 1),
    ],
)
def test_what_can_be_no_address_is_a_broker_without_listener(host: str, port: int, book: AddressBook) -> None:
    assert book.advertise(7, host, port) is None
    assert book.advertise(1, host, port) is None
    assert book.node_ids == [1]
    assert book.upstream_of(1) == HostPort("configured", 9092)


def test_ids_that_no_broker_has_and_too_many_are_not_learnt(book: AddressBook) -> None:
    assert book.advertise(-2, "host", 9092) is None
    for node_id in range(5000):
        book.advertise(node_id, "host", 9092)

    assert len(book.node_ids) == 2000
    assert book.advertise(1, "moved", 9092) == OURS  # the address of a known broker can still change
    assert book.upstream_of(1) == HostPort("moved", 9092)


def test_a_broker_whose_address_is_our_own_listener_leads_nowhere_until_it_has_another(book: AddressBook) -> None:
    book.advertise(7, OURS.host, OURS.port)

    assert book.upstream_of(7) is None
    assert book.looping_brokers == {7: OURS}

    book.advertise(7, "b-7", 9092)

    assert book.upstream_of(7) == HostPort("b-7", 9092)
    assert book.looping_brokers == {}


def test_a_negative_id_is_handed_on_to_be_reported() -> None:
    offered: list[int] = []
    book = AddressBook({}, offered.append)

    assert book.advertise(-7, "host", 9092) is None
    assert offered == [-7]
