"""A pattern that what clients name themselves is held against: a glob, or a regular expression of RE2's."""

from sluicegate.config.values.topic_pattern import compiled, is_for_every_principal, regular_expression_of
from sluicegate.validation.rules.rule import Client


class NamePattern:
    """Linear in the name, whatever a client calls itself. Any thread may ask. `is_for_every_principal`: it leaves out
    no principal, whatever its name is.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._compiled = compiled(regular_expression_of(pattern))
        self.is_for_every_principal = is_for_every_principal(pattern)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamePattern) and self.pattern == other.pattern

    def __hash__(self) -> int:
        return hash(self.pattern)

    def matches(self, name: str | None) -> bool:
        """Whether the whole of it does; nothing matches who has given no name."""
        return name is not None and self._compiled.fullmatch(name.encode(errors="replace").decode()) is not None

    def concerns_principal_of(self, client: Client) -> bool:
        """Whether the principal of `client` matches. An unverified one matches what every principal does."""
        return self.is_for_every_principal if client.is_unverified else self.matches(client.principal)
