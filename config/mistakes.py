"""Several mistakes in one section, each of which is reported."""

from collections.abc import Iterable

from sluicegate.config.files.source import Path

Mistake = tuple[Path, str]
"""The path from the section that is checked, and the message."""


class SectionMistakes(ValueError):
    """Everything that is wrong with a section as a whole. `found` has each mistake."""

    def __init__(self, found: Iterable[Mistake]) -> None:
        self.found = tuple(found)
        super().__init__("; ".join(message for _, message in self.found))


def raise_all(found: Iterable[Mistake]) -> None:
    """Raise Mistakes if there are any."""
    mistakes = list(found)
    if mistakes:
        raise SectionMistakes(mistakes)
