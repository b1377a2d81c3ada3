"""Whose certificates may connect (`listen.tls.allowed_names`)."""

from collections.abc import Iterable

from sluicegate.validation.requests.name_pattern import NamePattern

ALLOWED_NAMES = "listen.tls.allowed_names"


class AllowedNames:
    """Patterns, one of which one of a certificate's names must match. Linear in the names."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = tuple(NamePattern(pattern) for pattern in patterns)

    def hold_one_of(self, names: Iterable[str]) -> bool:
        """Whether who has these names may connect. Who has none may not."""
        return any(pattern.matches(name) for name in names for pattern in self._patterns)
