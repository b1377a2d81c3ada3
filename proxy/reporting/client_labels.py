"""Which client ids have metric series of their own: the first hundred that anything is to be said of.

All others count under `other`. None ever gives up its place, so that clients which invent names make no new series.
"""

from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.tally import OTHER, Tally

MAX_CLIENTS = 100
NOBODY = "none"
"""The label of clients that have no id."""


class ClientLabels:
    """Counts into `tally` by client id."""

    def __init__(self, tally: Tally, max_clients: int = MAX_CLIENTS) -> None:
        self._tally = tally
        self._max_clients = max_clients
        self._known: set[str] = set()

    def rehearsed(self, client_id: str | None, bound: str) -> None:
        """A bound that is only tried would have refused a batch of this client."""
        self._tally.rehearsed_clients[self.label(client_id), bound] += 1

    def label(self, client_id: str | None) -> str:
        """What it counts under from now on."""
        label = NOBODY if client_id is None else cut(client_id)
        if label in self._known:
            return label
        if len(self._known) >= self._max_clients:
            return OTHER
        self._known.add(label)
        return label
