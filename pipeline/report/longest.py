"""A table that nobody would read to its end is cut, and says so; of many alike the worst are shown, the rest in sum."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
MOST_ROWS = 50
WORST = 12
"""Of producers, clients and topics: as many as a plot has bars."""


def cut(rows: Sequence[T], where: str) -> tuple[Sequence[T], str]:
    """The first rows, and what to say of the rest, "" where there is none. `where`: the file or table that has all."""
    if len(rows) <= MOST_ROWS:
        return rows, ""
    return rows[:MOST_ROWS], f"The first {MOST_ROWS} of {len(rows):,}; all are in {where}."


def folded(rows: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    """Of rows with the worst first: those, and the others, which are shown as one; one alone stands for itself."""
    return (rows, ()) if len(rows) <= WORST + 1 else (rows[:WORST], rows[WORST:])
