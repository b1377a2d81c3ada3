"""Which upstream address each broker has, and which address of ours clients are told instead."""

from collections.abc import Callable

from config.address import HostPort

Offer = Callable[[int], HostPort | None]
"""Opens a listener for a node id (or finds it open) and returns its address for clients; None when it cannot."""


class AddressBook:
    """Learnt from every answer that carries addresses; a client never sees what is in it."""

    def __init__(self, known: dict[int, HostPort], offer: Offer) -> None:
        self._upstream = dict(known)
        self._offer = offer

    def upstream_of(self, node_id: int) -> HostPort | None:
        """Where broker `node_id` was last seen."""
        return self._upstream.get(node_id)

    def advertise(self, node_id: int, host: str, port: int) -> HostPort | None:
        """Learn that broker `node_id` is at host:port; returns what clients are told, None when it has no listener."""
        self._upstream[node_id] = HostPort(host, port)
        return self._offer(node_id)

    @property
    def node_ids(self) -> list[int]:
        """All brokers known."""
        return sorted(self._upstream)
