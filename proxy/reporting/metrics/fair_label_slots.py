"""A bounded number of places for names, of which nobody who sends many names takes those of others.

Each name belongs to the owner (a principal, or an address) that brought it, or to one that uses it too and has fewer.
When all places are taken, an owner with fewer names than the one with the most gets one of that one's.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
_LOOKED_AT = 8


class FairLabelSlots(Generic[K]):
    """At most `most` names, by owner. `worth` says which of the names that an owner has not used for longest stays."""

    def __init__(self, most: int, worth: Callable[[K], int] = lambda _: 0) -> None:
        self._most = most
        self._worth = worth
        self._owner_of: dict[K, str] = {}
        self._names_of: OrderedDict[str, OrderedDict[K, None]] = OrderedDict()  # the owner that was seen last is last

    def __contains__(self, name: object) -> bool:
        return name in self._owner_of

    def __len__(self) -> int:
        return len(self._owner_of)

    @property
    def are_taken(self) -> bool:
        """Whether a new name needs the place of another."""
        return len(self._owner_of) >= self._most

    def use(self, name: K, owner: str) -> None:
        """`owner` uses a name that has a place."""
        before = self._owner_of[name]
        if before != owner and len(self._names_of[before]) > len(self._names_of.get(owner, ())) + 1:
            self.drop(name)
            self.add(name, owner)
            return
        self._names_of[before].move_to_end(name)
        self._names_of.move_to_end(before)

    def add(self, name: K, owner: str) -> None:
        """Give a new name a place."""
        self._owner_of[name] = owner
        self._names_of.setdefault(owner, OrderedDict())[name] = None
        self._names_of.move_to_end(owner)

    def drop(self, name: K) -> None:
        """Take a name's place away."""
        owner = self._owner_of.pop(name)
        names = self._names_of[owner]
        del names[name]
        if not names:
            del self._names_of[owner]

    def of_others(self, owner: str) -> K | None:
        """Return the name that a new one of `owner` replaces, None if no other owner has more names than it."""
        most = max(self._names_of, key=lambda each: len(self._names_of[each]))
        if len(self._names_of[most]) <= len(self._names_of.get(owner, ())):
            return None
        return self._least_of(most)

    def of_its_own(self, owner: str) -> K | None:
        """Return the name of `owner` that a new one of its own replaces, None if it has none."""
        return self._least_of(owner) if owner in self._names_of else None

    def _least_of(self, owner: str) -> K:
        names = self._names_of[owner]
        oldest = [name for name, _ in zip(names, range(_LOOKED_AT), strict=False)]
        return min(oldest, key=self._worth)
