"""A few places that many want: nobody may take more of them than it leaves free, so a newcomer always finds one.

One alone gets half of them, two a third each, and so on; nothing has to be known of who else will come.
"""

from collections import Counter
from collections.abc import Hashable


class Places:
    """`total` of them. No thread, lock or clock."""

    def __init__(self, total: int) -> None:
        self._free = total
        self._taken: Counter[Hashable] = Counter()

    def taken_by(self, who: Hashable) -> int:
        """How many it has."""
        return self._taken[who]

    def has_one_for(self, who: Hashable) -> bool:
        """Whether `who` may take one more."""
        return self._taken[who] < self._free

    def take(self, who: Hashable) -> None:
        """One more for `who`."""
        self._free -= 1
        self._taken[who] += 1

    def give_back(self, who: Hashable) -> None:
        """One that it has taken."""
        self._free += 1
        self._taken[who] -= 1
        if not self._taken[who]:
            del self._taken[who]
