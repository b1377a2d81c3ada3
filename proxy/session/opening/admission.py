"""Limits the number of connections, in total and from one address."""

from collections import Counter
from collections.abc import Iterable

from sluicegate.proxy.session.limit_names import CONNECTIONS, CONNECTIONS_PER_ADDRESS
from sluicegate.validation.requests.name_pattern import NamePattern


class Admission:
    """Counts connections, at most `most`. `per_address` None: unlimited."""

    def __init__(self, most: int, per_address: int | None) -> None:
        self.most = most
        self._per_address = per_address
        self._of_address: Counter[str] = Counter()
        self._all = 0

    def enter(self, address: str) -> tuple[str, int] | None:
        """Admit a connection (None), or return the limit that it would exceed and its value."""
        if self._all >= self.most:
            return CONNECTIONS, self.most
        if self._per_address is not None and self._of_address[address] >= self._per_address:
            return CONNECTIONS_PER_ADDRESS, self._per_address
        self._all += 1
        self._of_address[address] += 1
        return None

    def leave(self, address: str) -> None:
        """Count the end of an admitted connection."""
        self._all -= 1
        self._of_address[address] -= 1
        if self._of_address[address] <= 0:
            del self._of_address[address]


class AllowedNames:
    """Patterns for certificate names; at least one name must match a pattern. Linear in the number of names."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = tuple(NamePattern(pattern) for pattern in patterns)

    def match_any(self, names: Iterable[str]) -> bool:
        """Return whether a certificate with these names may connect; one without names may not."""
        return any(pattern.matches(name) for name in names for pattern in self._patterns)
