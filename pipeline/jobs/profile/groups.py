"""Groups records of a batch by kind and minute and aggregates each group, without a loop over records."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Groups:
    """Groups of records with equal kind and minute, in the order of each group's first record."""

    def __init__(self, kinds: NDArray[np.int8], minutes: NDArray[np.int64]) -> None:
        first = int(minutes.min())
        self._counted: NDArray[np.uint16] | None = None
        if int(kinds.max()) == int(kinds.min()) and int(minutes.max()) - first < 1 << 16:
            self._counted = (minutes - first).astype(np.uint16)  # sorted by counting, in linear time
            self._order = np.argsort(self._counted, kind="stable")
        else:
            self._order = np.lexsort((minutes, kinds))  # stable, so groups keep the records' order
        changes = (np.diff(kinds[self._order]) != 0) | (np.diff(minutes[self._order]) != 0)
        self._starts = np.concatenate(([0], np.flatnonzero(changes) + 1))
        self._ends = np.append(self._starts[1:], len(kinds))
        self._sorted = np.argsort(self._order[self._starts])

    @property
    def sizes(self) -> NDArray[Any]:
        """Return the number of records in each group."""
        return np.asarray((self._ends - self._starts)[self._sorted])

    def first_of(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return each group's first value."""
        return np.asarray(values[self._order[self._starts]][self._sorted])

    def last_of(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return each group's last value."""
        return np.asarray(values[self._order[self._ends - 1]][self._sorted])

    def sum(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of each group's values."""
        if self._counted is not None:
            sums = np.bincount(self._counted, values)  # exact: a batch's bytes fit in a double
            found = sums[self._counted[self._order[self._starts]]].astype(np.int64)
        else:
            found = np.add.reduceat(values[self._order].astype(np.int64), self._starts)
        return np.asarray(found[self._sorted])

    def least(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return each group's smallest value."""
        return np.asarray(np.minimum.reduceat(values[self._order], self._starts)[self._sorted])

    def most(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return each group's largest value."""
        return np.asarray(np.maximum.reduceat(values[self._order], self._starts)[self._sorted])
