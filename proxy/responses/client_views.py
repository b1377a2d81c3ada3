"""Stores the addresses that a cluster gave each client.

Some clusters return different Metadata to each client, for example by zone.
"""

from collections import OrderedDict
from collections.abc import Mapping

from sluicegate.config.values.address import HostPort

_MAX_CLIENTS = 1000
_MAX_ADDRESSES = 100_000
_RECENT_VIEWS = 16
_NOTHING: Mapping[int, HostPort] = {}


class ClientViews:
    """The last known addresses by client id.

    In most clusters all clients receive the same addresses, which are stored once.
    """

    def __init__(self) -> None:
        self._views: OrderedDict[str, Mapping[int, HostPort]] = OrderedDict()
        self._recent: list[Mapping[int, HostPort]] = []
        self._addresses = 0

    def learn(self, client_id: str, addresses: Mapping[int, HostPort]) -> None:
        """Store the addresses, by node id, from a response to this client. The oldest clients are forgotten."""
        before = self._views.get(client_id, _NOTHING)
        self._views[client_id] = view = self._with(before, addresses)
        self._views.move_to_end(client_id)
        self._addresses += len(view) - len(before)
        while len(self._views) > _MAX_CLIENTS or (self._addresses > _MAX_ADDRESSES and len(self._views) > 1):
            _, forgotten = self._views.popitem(last=False)
            self._addresses -= len(forgotten)

    def address_for(self, client_id: str, node_id: int) -> HostPort | None:
        """Return the address that this client received for a broker, or None if it is unknown."""
        return self._views.get(client_id, _NOTHING).get(node_id)

    def _with(self, view: Mapping[int, HostPort], addresses: Mapping[int, HostPort]) -> Mapping[int, HostPort]:
        if all(view.get(node_id) == address for node_id, address in addresses.items()):
            return view
        changed = {**view, **addresses}
        if changed in self._recent:
            return self._recent[self._recent.index(changed)]
        self._recent.append(changed)
        del self._recent[:-_RECENT_VIEWS]
        return changed
