"""Represents a place in an AsyncAPI document: a value, and the file and path where it is written."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sluicegate.config.files.source import Path, Problem, Source


class Refused(Exception):
    """Raised for a part of a document that cannot be used."""

    def __init__(self, node: "DocumentNode", words: str) -> None:
        source = node.source
        self.problem = Problem(source.key_of(node.path), node.place, words)
        super().__init__(str(self.problem))


@dataclass(frozen=True, slots=True)
class DocumentNode:
    """A value, with its source (one file) and its path in the file."""

    value: Any
    source: Source
    path: Path = ()

    @property
    def place(self) -> str:
        """Return the file and the line."""
        return self.source.place_of(self.path)

    def at(self, part: str | int) -> "DocumentNode":
        """Return the value at a key or a position, which must exist."""
        return DocumentNode(self.value[part], self.source, (*self.path, part))

    def get(self, key: str) -> "DocumentNode | None":
        """Return a key's value, or None if it is missing or null. Raises Refused if this is not a mapping."""
        return self.at(key) if self.mapping().get(key) is not None else None

    def mapping(self) -> dict[str, Any]:
        """Return the value, which must be a mapping. Raises Refused."""
        if not isinstance(self.value, dict):
            raise Refused(self, "expected a mapping of keys to values")
        return self.value

    def items(self) -> Iterator[tuple[str, "DocumentNode"]]:
        """Yield the keys and values of a mapping. Raises Refused."""
        yield from ((key, self.at(key)) for key in self.mapping())

    def list(self) -> "list[DocumentNode]":
        """Return the items of a list. Raises Refused."""
        if not isinstance(self.value, list):
            raise Refused(self, "expected a list")
        return [self.at(i) for i in range(len(self.value))]

    def text(self) -> str:
        """Return the value, which must be a string. Raises Refused."""
        if not isinstance(self.value, str):
            raise Refused(self, "expected a text")
        return self.value
