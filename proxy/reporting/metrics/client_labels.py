"""Which client ids have metric series of their own: a hundred of those that anything is to be said of.

All others count under `other`. A client that invents names takes no place from others: only an owner with fewer names
gets one of the owner that has the most, whose counts go to `other`.
"""

from collections.abc import Callable

from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.metrics.counters import OTHER
from sluicegate.proxy.reporting.metrics.fair_label_slots import FairLabelSlots

MAX_CLIENTS = 100
NOBODY = "none"
"""The label of clients that have no id."""


class ClientLabels:
    """`fold` moves the counts of a label to `other`. An `owner` is a `ClientDetails.owner`."""

    def __init__(self, fold: Callable[[str], None], max_clients: int = MAX_CLIENTS) -> None:
        self._fold = fold
        self._places: FairLabelSlots[str] = FairLabelSlots(max_clients)

    def label(self, client_id: str | None, owner: str) -> str:
        """What it counts under from now on."""
        label = NOBODY if client_id is None else cut(client_id)
        if label in self._places:
            self._places.use(label, owner)
            return label
        if self._places.are_taken:
            replaced = self._places.of_others(owner)
            if replaced is None:
                return OTHER
            self._places.drop(replaced)
            self._fold(replaced)
        self._places.add(label, owner)
        return label
