"""A pattern that what clients name themselves is held against: a glob, or a regular expression of RE2's."""

from sluicegate.config.topic_pattern import compiled, regular_expression_of


class NamePattern:
    """Linear in the name, whatever a client calls itself. Any thread may ask."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._compiled = compiled(regular_expression_of(pattern))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamePattern) and self.pattern == other.pattern

    def __hash__(self) -> int:
        return hash(self.pattern)

    def matches(self, name: str | None) -> bool:
        """Whether the whole of it does; nothing matches who has given no name."""
        return name is not None and self._compiled.fullmatch(name.encode(errors="replace").decode()) is not None
