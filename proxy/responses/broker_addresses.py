"""Maps each broker to its upstream address and to the proxy's address for it."""

from collections.abc import Callable, Collection

from sluicegate.config.values.address import HostPort, reachable_address
from sluicegate.proxy.responses.client_views import ClientViews

_MAX_BROKERS = 2000

Offer = Callable[[int], HostPort | None]
"""Finds or opens the listener for a node id. Returns its address for clients, or None if there is none."""


class AddressBook:
    """The brokers' upstream addresses, which clients never see."""

    def __init__(self, known: dict[int, HostPort], offer: Offer) -> None:
        self._upstream = dict(known)
        self._offer = offer
        self._views = ClientViews()
        self.looping_brokers: dict[int, HostPort] = {}
        """The brokers whose advertised address is that of the proxy's own listener for them."""

    def upstream_of(self, node_id: int) -> HostPort | None:
        """Return the last known address of a broker, or None if that address is the proxy's own."""
        return None if node_id in self.looping_brokers else self._upstream.get(node_id)

    def addresses_for(self, node_id: int, client_id: str | None) -> tuple[HostPort, ...]:
        """Return the addresses to try for a broker, in order.

        The first is the address that the cluster gave this client, if there is one. The second is the last known
        address. In most clusters it is the same for all clients.
        """
        if node_id in self.looping_brokers:
            return ()
        own = None if client_id is None else self._views.address_for(client_id, node_id)
        return tuple(dict.fromkeys(each for each in (own, self._upstream.get(node_id)) if each is not None))

    def learn_view(self, client_id: str, node_ids: Collection[int]) -> None:
        """Record that this client received the addresses that these brokers advertised last."""
        self._views.learn(client_id, {each: self._upstream[each] for each in node_ids if each in self._upstream})

    def advertise(self, node_id: int, host: str, port: int) -> HostPort | None:
        """Record a broker's address. Return the proxy's address for clients, or None if the broker has no listener.

        Invalid addresses are ignored, as are brokers beyond the maximum number for a cluster.
        """
        known = self._upstream.get(node_id)
        if known is None or known.host != host or known.port != port:
            if node_id < 0:
                self._offer(node_id)  # `find` logs the error
                return None
            if known is None and len(self._upstream) >= _MAX_BROKERS:
                return None
            address = reachable_address(host, port)
            if address is None:
                return None
            self._upstream[node_id] = address
        ours = self._offer(node_id)
        if ours is not None and ours == self._upstream[node_id]:
            self.looping_brokers[node_id] = ours
        else:
            self.looping_brokers.pop(node_id, None)
        return ours

    @property
    def node_ids(self) -> list[int]:
        """The ids of all known brokers."""
        return sorted(self._upstream)
