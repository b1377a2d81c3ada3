"""Counts each topic's and each client's traffic of the last 15 minutes, with its first and last time."""

from array import array
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final

from sluicegate.proxy.live.live_state import TrafficHistory, TrafficRates, TrafficState
from sluicegate.proxy.reporting.bounded_text import cut

MAX_TOPICS = 1000
MAX_CLIENTS = 500
BIN_SECONDS = 10
BINS = 90
_BIN_MS = 1000 * BIN_SECONDS
COLUMNS: Final = ("batches", "records", "size", "violations")
_ROW = bytes(8 * len(COLUMNS))


class _Counts:
    """A ring of 2.9 kB with the counts for each bin of 10 s, by column."""

    __slots__ = ("_newest", "_oldest", "_ring", "first_ms", "last_ms")

    def __init__(self, now_ms: int) -> None:
        self.first_ms = self.last_ms = now_ms
        self._oldest = self._newest = now_ms // _BIN_MS
        self._ring = array("q", _ROW * BINS)

    def add(self, now_ms: int, batches: int, records: int, size: int, violations: int) -> None:
        """Add to the current bin. If the clock was set back, add to the newest bin."""
        if now_ms // _BIN_MS > self._newest:
            self._begin(now_ms // _BIN_MS)
        ring, at = self._ring, self._newest % BINS * len(COLUMNS)
        ring[at] += batches
        ring[at + 1] += records
        ring[at + 2] += size
        ring[at + 3] += violations

    def _begin(self, newest: int) -> None:
        for skipped in range(max(self._newest + 1, newest - BINS + 1), newest + 1):
            at = skipped % BINS * len(COLUMNS)
            self._ring[at : at + len(COLUMNS)] = array("q", _ROW)
        self._newest = newest

    def complete_bins(self, now_ms: int) -> range:
        """Return the bins that are known and complete, at most the newest 89."""
        now = max(now_ms // _BIN_MS, self._newest)
        return range(max(self._oldest, now - BINS + 1), now)

    def column(self, column: int, bins: Iterable[int]) -> list[int]:
        """Return one column for these bins. Bins after the newest one are zero."""
        return [
            self._ring[each % BINS * len(COLUMNS) + column] if self._newest - BINS < each <= self._newest else 0
            for each in bins
        ]


class Traffic:
    """The traffic of at most `most` topics or clients.

    At the limit, a new one replaces the one that has been inactive for longest. All times are those of the last `tick`,
    which is called about once a second. `state` and `history` are thread-safe.
    """

    def __init__(self, most: int, now_ms: int) -> None:
        self._most = most
        self._now_ms = now_ms
        self._counts: OrderedDict[str | None, _Counts] = OrderedDict()

    def tick(self, now_ms: int) -> None:
        """Set the time for everything that is counted from now on."""
        self._now_ms = now_ms

    def seen(self, name: str | None) -> None:
        """Record that a batch was seen, whether or not it is counted."""
        self._of(name)

    def add(self, name: str | None, batches: int = 0, records: int = 0, size: int = 0, violations: int = 0) -> None:
        """Count validated batches with their records and bytes, and batches with violations."""
        self._of(name).add(self._now_ms, batches, records, size, violations)

    def _of(self, name: str | None) -> _Counts:
        key = None if name is None else cut(name)
        counts = self._counts.get(key)
        if counts is None:
            counts = self._counts[key] = _Counts(self._now_ms)
            if len(self._counts) > self._most:
                self._counts.popitem(last=False)
        else:
            self._counts.move_to_end(key)
        counts.last_ms = self._now_ms
        return counts

    def state(self, after_ms: int) -> list[TrafficState]:
        """Return the topics or clients with traffic after `after_ms` (Unix time), newest last.

        The rates are those of the last complete bin.
        """
        return [
            {"name": name, "first_ms": counts.first_ms, "last_ms": counts.last_ms, "rates": self._rates(counts)}
            for name, counts in list(self._counts.items())
            if counts.last_ms > after_ms
        ]

    def _rates(self, counts: _Counts) -> TrafficRates | None:
        bins = counts.complete_bins(self._now_ms)[-1:]
        if not bins:
            return None
        batches, records, size, violations = (
            counts.column(column, bins)[0] / BIN_SECONDS for column in range(len(COLUMNS))
        )
        return {"batches": batches, "records": records, "size": size, "violations": violations}

    def history(self, name: str | None) -> TrafficHistory | None:
        """Return the complete bins of the last 15 minutes, oldest first, or None if the name is unknown."""
        counts = self._counts.get(None if name is None else cut(name))
        if counts is None:
            return None
        bins = counts.complete_bins(self._now_ms)
        batches, records, size, violations = (counts.column(column, bins) for column in range(len(COLUMNS)))
        return {
            "begin": bins.start * BIN_SECONDS,
            "bin_seconds": BIN_SECONDS,
            "batches": batches,
            "records": records,
            "size": size,
            "violations": violations,
        }


def sum_of_histories(histories: Sequence[TrafficHistory]) -> TrafficHistory | None:
    """Return the sum of the histories for each bin, or None without histories."""
    if not histories:
        return None
    begin = min(each["begin"] for each in histories) // BIN_SECONDS
    end = max(each["begin"] // BIN_SECONDS + len(each["batches"]) for each in histories)
    begin = max(begin, end - BINS)

    def sum_columns(columns: Iterable[list[int]]) -> list[int]:
        row = [0] * (end - begin)
        for history, counts in zip(histories, columns, strict=True):
            for each, count in enumerate(counts, history["begin"] // BIN_SECONDS):
                if each >= begin:
                    row[each - begin] += count
        return row

    return {
        "begin": begin * BIN_SECONDS,
        "bin_seconds": BIN_SECONDS,
        "batches": sum_columns(each["batches"] for each in histories),
        "records": sum_columns(each["records"] for each in histories),
        "size": sum_columns(each["size"] for each in histories),
        "violations": sum_columns(each["violations"] for each in histories),
    }
