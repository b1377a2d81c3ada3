"""A bounded number of slots for names, shared fairly between the owners of the names.

A name belongs to the owner (a principal, or an address) that used it first, or to another user of it with fewer names.
If all slots are taken, an owner with fewer names replaces a name of the owner with the most.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
_COMPARED = 8


class FairLabelSlots(Generic[K]):
    """At most `most` names. Of an owner's oldest names the one with the lowest `worth` is replaced first."""

    def __init__(self, most: int, worth: Callable[[K], int] = lambda _: 0) -> None:
        self._most = most
        self._worth = worth
        self._owner_of: dict[K, str] = {}
        self._names_of: OrderedDict[str, OrderedDict[K, None]] = OrderedDict()  # least recently used owner first

    def __contains__(self, name: object) -> bool:
        return name in self._owner_of

    def __len__(self) -> int:
        return len(self._owner_of)

    @property
    def is_full(self) -> bool:
        """Whether a new name needs the slot of another."""
        return len(self._owner_of) >= self._most

    def owners(self) -> dict[K, str]:
        """Return the owner of each name. Thread-safe."""
        return self._owner_of.copy()

    def use(self, name: K, owner: str) -> None:
        """Note that `owner` uses a name that has a slot."""
        before = self._owner_of[name]
        if before != owner and len(self._names_of[before]) > len(self._names_of.get(owner, ())) + 1:
            self.drop(name)
            self.add(name, owner)
            return
        self._names_of[before].move_to_end(name)
        self._names_of.move_to_end(before)

    def add(self, name: K, owner: str) -> None:
        """Give a slot to a new name."""
        self._owner_of[name] = owner
        self._names_of.setdefault(owner, OrderedDict())[name] = None
        self._names_of.move_to_end(owner)

    def drop(self, name: K) -> None:
        """Free the slot of a name."""
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
        oldest = [name for name, _ in zip(names, range(_COMPARED), strict=False)]
        return min(oldest, key=self._worth)
