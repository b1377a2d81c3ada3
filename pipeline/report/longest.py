"""A table that nobody would read to its end is cut, and says so."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
MOST_ROWS = 50


def cut(rows: Sequence[T], where: str) -> tuple[Sequence[T], str]:
    """The first rows, and what to say of the rest, "" where there is none. `where`: the file or table that has all."""
    if len(rows) <= MOST_ROWS:
        return rows, ""
    return rows[:MOST_ROWS], f"The first {MOST_ROWS} of {len(rows):,}; all are in {where}."
