"""A limited number of slots for names, shared fairly among the names' holders.

A name belongs to the holder (a principal or an address) that used it first, or to another holder that uses it and has
fewer names. If all slots are taken, a holder with fewer names replaces a name of the holder with the most.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
_COMPARED = 8


class FairLabelSlots(Generic[K]):
    """Slots for at most `most` names.

    `on_replaced` is called with a name before another name gets its slot. Among a holder's oldest names, the one with
    the lowest `worth` is replaced first.
    """

    def __init__(self, most: int, on_replaced: Callable[[K], None], worth: Callable[[K], int] = lambda _: 0) -> None:
        self._most = most
        self._on_replaced = on_replaced
        self._worth = worth
        self._holder_of: dict[K, str] = {}
        # the least recently used holder is first
        self._names_of: OrderedDict[str, OrderedDict[K, None]] = OrderedDict()

    def __contains__(self, name: object) -> bool:
        return name in self._holder_of

    def __len__(self) -> int:
        return len(self._holder_of)

    def holders(self) -> dict[K, str]:
        """Return the holder of each name. Thread-safe."""
        return self._holder_of.copy()

    def take(self, name: K, holder: str) -> bool:
        """Give a slot to `name` unless it has one.

        Return False if all slots are taken and no other holder has more names than `holder`.
        """
        if name in self._holder_of:
            self._use(name, holder)
            return True
        if len(self._holder_of) >= self._most:
            largest = max(self._names_of, key=lambda each: len(self._names_of[each]))
            if len(self._names_of[largest]) <= len(self._names_of.get(holder, ())):
                return False
            self._replace_one_of(largest)
        self._add(name, holder)
        return True

    def take_any(self, name: K, holder: str) -> None:
        """Give a slot to `name` as `take` does. If no other holder has more names, replace one of
        this holder's names.
        """
        if not self.take(name, holder):
            self._replace_one_of(holder)
            self._add(name, holder)

    def drop(self, name: K) -> None:
        """Free a name's slot."""
        holder = self._holder_of.pop(name)
        names = self._names_of[holder]
        del names[name]
        if not names:
            del self._names_of[holder]

    def _use(self, name: K, holder: str) -> None:
        before = self._holder_of[name]
        if before != holder and len(self._names_of[before]) > len(self._names_of.get(holder, ())) + 1:
            self.drop(name)
            self._add(name, holder)
            return
        self._names_of[before].move_to_end(name)
        self._names_of.move_to_end(before)

    def _add(self, name: K, holder: str) -> None:
        self._holder_of[name] = holder
        self._names_of.setdefault(holder, OrderedDict())[name] = None
        self._names_of.move_to_end(holder)

    def _replace_one_of(self, holder: str) -> None:
        oldest = [name for name, _ in zip(self._names_of[holder], range(_COMPARED), strict=False)]
        replaced = min(oldest, key=self._worth)
        self.drop(replaced)
        self._on_replaced(replaced)
