"""The proxy learns broker addresses from responses."""

import pytest

from sluicegate.config.values.address import HostPort
from sluicegate.proxy.responses.broker_addresses import AddressBook

OURS = HostPort("proxy", 19101)


@pytest.fixture
def address_book() -> AddressBook:
    return AddressBook({1: HostPort("configured", 9092)}, lambda _: OURS)


@pytest.mark.parametrize("host", ["b-1.kafka.test", "10.0.0.1", "fe80::1", "b.kafka.test.", "under_score", "a" * 63])
def test_a_valid_broker_address_is_learned_and_replaced(host: str, address_book: AddressBook) -> None:
    assert address_book.advertise(7, host, 9092) == OURS
    assert address_book.upstream_of(7) == HostPort(host, 9092)


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
def test_broker_with_invalid_address_gets_no_listener(host: str, port: int, address_book: AddressBook) -> None:
    assert address_book.advertise(7, host, port) is None
    assert address_book.advertise(1, host, port) is None
    assert address_book.node_ids == [1]
    assert address_book.upstream_of(1) == HostPort("configured", 9092)


def test_invalid_broker_ids_and_brokers_beyond_limit_are_not_learned(address_book: AddressBook) -> None:
    assert address_book.advertise(-2, "host", 9092) is None
    for node_id in range(5000):
        address_book.advertise(node_id, "host", 9092)

    assert len(address_book.node_ids) == 2000
    assert address_book.advertise(1, "moved", 9092) == OURS  # the address of a known broker can still change
    assert address_book.upstream_of(1) == HostPort("moved", 9092)


def test_broker_with_address_of_proxy_has_no_upstream_until_address_changes(
    address_book: AddressBook,
) -> None:
    address_book.advertise(7, OURS.host, OURS.port)

    assert address_book.upstream_of(7) is None
    assert address_book.looping_brokers == {7: OURS}

    address_book.advertise(7, "b-7", 9092)

    assert address_book.upstream_of(7) == HostPort("b-7", 9092)
    assert address_book.looping_brokers == {}


def test_a_negative_broker_id_is_passed_to_the_listeners() -> None:
    offered: list[int] = []
    address_book = AddressBook({}, offered.append)

    assert address_book.advertise(-7, "host", 9092) is None
    assert offered == [-7]
