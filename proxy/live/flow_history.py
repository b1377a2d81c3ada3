"""The traffic in each second of the last 15 minutes."""

from array import array
from typing import NamedTuple

from sluicegate.proxy.live.live_state import History

SECONDS = 900
_RATE_SECONDS = 5
_NONE_YET = -1


class Flow(NamedTuple):
    """Counts for one second, or since the start.

    `size` is the number of bytes in Produce requests. `rejected` counts rejected batches. `observed` counts the batches
    that were forwarded despite violations, or beyond a rehearsed bound.
    """

    requests: int = 0
    records: int = 0
    size: int = 0
    rejected: int = 0
    rejected_records: int = 0
    observed: int = 0


class Rates(NamedTuple):
    """Rates per second of requests, records, bytes of Produce requests, rejected batches and observed batches."""

    requests: float
    records: float
    size: float
    rejected: float
    observed: float


def rates_of(history: History) -> Rates:
    """Return the average of the last five complete seconds. The newest second is incomplete."""

    def average_of_column(column: list[int]) -> float:
        whole = column[:-1][-_RATE_SECONDS:]
        return sum(whole) / max(1, len(whole))

    return Rates(*(average_of_column(history[name]) for name in Rates._fields))  # type: ignore[literal-required]


class FlowHistory:
    """A ring buffer that takes 48 bytes per second."""

    def __init__(self) -> None:
        self._columns = tuple(array("q", bytes(8 * SECONDS)) for _ in Flow._fields)
        self._newest = _NONE_YET
        self._oldest = _NONE_YET
        self._before = Flow()

    def add(self, second: int, since_start: Flow) -> None:
        """Store the totals up to `second` (Unix time)."""
        if self._newest == _NONE_YET:
            self._oldest = self._newest = second
        second = max(second, self._newest)  # the clock may have been set back
        for skipped in range(max(self._newest + 1, second - SECONDS + 1), second + 1):
            for column in self._columns:
                column[skipped % SECONDS] = 0
        self._newest = second
        for column, now, before in zip(self._columns, since_start, self._before, strict=True):
            column[second % SECONDS] += now - before
        self._before = since_start

    def state(self, seconds: int) -> History:
        """Return the newest `seconds` of the history, oldest first."""
        begin = max(self._oldest, self._newest - min(seconds, SECONDS) + 1)
        span = range(begin, self._newest + 1) if self._newest != _NONE_YET else range(0)
        rows = {
            name: [column[second % SECONDS] for second in span]
            for name, column in zip(Flow._fields, self._columns, strict=True)
        }
        return {"begin": begin, **rows}  # type: ignore[typeddict-item]  # the names are History's
