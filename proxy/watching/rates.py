"""How much flows now, out of what flowed in the last seconds."""

from typing import NamedTuple

from sluicegate.proxy.live.live_state import History

_SECONDS = 5


class Rates(NamedTuple):
    """A second: requests, records, bytes of Produce requests, refused batches, batches that were only told of."""

    requests: float
    records: float
    size: float
    refused: float
    told: float


def rates_of(history: History) -> Rates:
    """The average of the last five whole seconds; the newest is not over."""

    def average(column: list[int]) -> float:
        whole = column[:-1][-_SECONDS:]
        return sum(whole) / max(1, len(whole))

    return Rates(*(average(history[name]) for name in Rates._fields))  # type: ignore[literal-required]
