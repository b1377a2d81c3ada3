"""The proxy remembers the addresses that each client received."""

from sluicegate.config.values.address import HostPort
from sluicegate.proxy.responses.broker_addresses import AddressBook
from sluicegate.proxy.responses.client_views import ClientViews

EAST, WEST, OURS = HostPort("east", 1), HostPort("west", 1), HostPort("proxy", 1)


def test_addresses_for_client_start_with_the_one_it_received() -> None:
    book = AddressBook({}, lambda _: OURS)
    for client, address in (("a", EAST), ("b", WEST)):
        book.advertise(7, address.host, address.port)
        book.learn_view(client, [7])

    assert book.addresses_for(7, "a") == (EAST, WEST)
    assert book.addresses_for(7, "b") == book.addresses_for(7, "c") == book.addresses_for(7, None) == (WEST,)
    assert book.addresses_for(8, "a") == ()

    book.advertise(7, OURS.host, OURS.port)  # this would be a loop
    assert book.addresses_for(7, "a") == ()


def test_clients_with_equal_addresses_share_one_view_and_oldest_are_evicted() -> None:
    views, cluster = ClientViews(), {node_id: HostPort(f"b-{node_id}", 9) for node_id in range(500)}
    for number in range(300):
        views.learn(f"c-{number}", dict(cluster))
    known = [number for number in range(300) if views.address_for(f"c-{number}", 3) == HostPort("b-3", 9)]

    assert known == list(range(100, 300)), "200 clients with 500 addresses each"
    assert len({id(view) for view in views._views.values()}) == 1

    for number in range(2000):
        views.learn(f"d-{number}", {1: EAST})
    assert views.address_for("d-999", 1) is None
    assert views.address_for("d-1000", 1) == EAST
