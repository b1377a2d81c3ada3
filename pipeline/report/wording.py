"""What a report says before it lists anything."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar
from unicodedata import east_asian_width


@dataclass(frozen=True, slots=True)
class Conclusion:
    """`found` is one sentence, `to_do` what follows from it; commands print both above their table."""

    found: str
    to_do: str

    def __str__(self) -> str:
        return f"{self.found}\n{self.to_do}"


def share(count: int, of: int) -> str:
    """As `50 (5 %)`."""
    return f"{count:,} ({100 * count / of:.4g} %)" if of else f"{count:,}"


def counted(count: int, what: str) -> str:
    """As `1 topic` or `2 topics`."""
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def counts_in_words(counts: dict[str, int]) -> str:
    """As `nanoseconds 40, zero 10`: the largest first."""
    return ", ".join(f"{name} {n:,}" for name, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if n)


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
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


def printable(name: str) -> str:
    """Without control characters, which a terminal would obey."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def shortened(name: str) -> str:
    """Beside a plot: its beginning and its end."""
    width = sum(2 if east_asian_width(c) in "WF" else 1 for c in name)
    kept = _MOST // 2 * len(name) // max(width, 1)
    return name if width <= _MOST else f"{name[:kept]}…{name[-kept + 1 :]}"


def duration(milliseconds: int) -> str:
    """As `1 h` or `30 s`."""
    for size, unit in _UNITS:
        if milliseconds >= size and milliseconds % size == 0:
            return f"{milliseconds // size} {unit}"
    return f"{milliseconds} ms"
