"""How reports show names that clients chose, moments, and long tables: cut, with the rest counted."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeVar
from unicodedata import east_asian_width

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


def moment(milliseconds: int) -> str:
    """As `2026-11-21 09:30:00 UTC`; `no date` where calendars do not reach."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "no date"


def dated(milliseconds: int | None) -> str:
    """As `1970-01-01 00:00:00 UTC (0)`; `none` for none."""
    return "none" if milliseconds is None else f"{moment(milliseconds)} ({milliseconds})"


_MOST = 32


def printable(name: str) -> str:
    """Without control characters, which a terminal would obey."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def shortened(name: str) -> str:
    """Beside a plot: its beginning and its end."""
    width = sum(2 if east_asian_width(c) in "WF" else 1 for c in name)
    kept = _MOST // 2 * len(name) // max(width, 1)
    return name if width <= _MOST else f"{name[:kept]}…{name[-kept + 1 :]}"
