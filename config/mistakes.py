"""Reports all mistakes in a section together."""

from collections.abc import Iterable

from sluicegate.config.files.source import Path

Mistake = tuple[Path, str]
"""The path, relative to the section that is checked, and the message."""


class SectionMistakes(ValueError):
    """Raised for mistakes that concern a section as a whole. `found` lists all of them."""

    def __init__(self, found: Iterable[Mistake]) -> None:
        self.found = tuple(found)
        super().__init__("; ".join(message for _, message in self.found))


def raise_all(found: Iterable[Mistake]) -> None:
    """Raise SectionMistakes if there are any mistakes."""
    mistakes = list(found)
    if mistakes:
        raise SectionMistakes(mistakes)
