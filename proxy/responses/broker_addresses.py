"""Which upstream address each broker has, and which address of ours clients are told instead."""

from collections.abc import Callable

from sluicegate.config.values.address import HostPort, reachable

_MAX_BROKERS = 2000

Offer = Callable[[int], HostPort | None]
"""Opens a listener for a node id (or finds it open) and returns its address for clients; None when it cannot."""


class AddressBook:
    """Learnt from every answer that carries addresses; a client never sees what is in it."""

    def __init__(self, known: dict[int, HostPort], offer: Offer) -> None:
        self._upstream = dict(known)
        self._offer = offer
        self.looping_brokers: dict[int, HostPort] = {}
        """Brokers that are said to be where our own listener for them is."""

    def upstream_of(self, node_id: int) -> HostPort | None:
        """Where broker `node_id` was last seen; None for one whose address is what clients are told: ours."""
        return None if node_id in self.looping_brokers else self._upstream.get(node_id)

    def advertise(self, node_id: int, host: str, port: int) -> HostPort | None:
        """Learn that broker `node_id` is at host:port; returns what clients are told, None when it has no listener.

        An address that cannot be one, and brokers beyond any cluster's number, are not learnt and have none.
        """
        known = self._upstream.get(node_id)
        if known is None or known.host != host or known.port != port:
            if node_id < 0:
                self._offer(node_id)  # which reports it
                return None
            if known is None and len(self._upstream) >= _MAX_BROKERS:
                return None
            address = reachable(host, port)
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
        """All brokers known."""
        return sorted(self._upstream)
