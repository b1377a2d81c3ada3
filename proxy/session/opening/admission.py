"""Limits the number of connections, in total and per address."""

from collections import Counter
from collections.abc import Iterable

from sluicegate.proxy.session.limit_names import CONNECTIONS, CONNECTIONS_PER_ADDRESS
from sluicegate.validation.requests.name_pattern import NamePattern


class Admission:
    """Counts connections. `most` is the total limit.

    `per_address` is the limit per address, or None for no limit.
    """

    def __init__(self, most: int, per_address: int | None) -> None:
        self.most = most
        self._per_address = per_address
        self._of_address: Counter[str] = Counter()
        self._all = 0

    def enter(self, address: str) -> tuple[str, int] | None:
        """Admit a connection and return None. If it would exceed a limit, return that limit's key and value instead."""
        if self._all >= self.most:
            return CONNECTIONS, self.most
        if self._per_address is not None and self._of_address[address] >= self._per_address:
            return CONNECTIONS_PER_ADDRESS, self._per_address
        self._all += 1
        self._of_address[address] += 1
        return None

    def leave(self, address: str) -> None:
        """Record the end of an admitted connection."""
        self._all -= 1
        self._of_address[address] -= 1
        if self._of_address[address] <= 0:
            del self._of_address[address]


class AllowedNames:
    """Patterns for certificate names, of which at least one must match. The cost is linear in the number of names."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = tuple(NamePattern(pattern) for pattern in patterns)

    def match_any(self, names: Iterable[str]) -> bool:
        """Return whether a certificate with these names may connect. A certificate without names may not."""
        return any(pattern.matches(name) for name in names for pattern in self._patterns)
