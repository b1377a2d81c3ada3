"""Formats the text of reports: the conclusion, counts, times, names of clients, and long lists."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, TypeVar
from unicodedata import east_asian_width


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The conclusion of a report, which commands print above their table.

    `found` is the finding in one sentence. `to_do` is the recommendation.
    """

    found: str
    to_do: str

    def __str__(self) -> str:
        return f"{self.found}\n{self.to_do}"


def share_text(count: int, of: int) -> str:
    """Return a share such as `50 (5 %)`."""
    return f"{count:,} ({100 * count / of:.4g} %)" if of else f"{count:,}"


def count_text(count: int, what: str) -> str:
    """Return a count such as `1 topic` or `2 topics`."""
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def counts_in_words(counts: Mapping[str, int], at_most: Mapping[str, int] = MappingProxyType({})) -> str:
    """Return counts such as `nanoseconds 40, zero 10`, largest first.

    `at_most` contains the upper ends of counts that are ranges.
    """
    ranges = {name: (n, max(n, at_most.get(name, n))) for name, n in counts.items()}
    ordered = sorted(ranges.items(), key=lambda item: (-item[1][1], item[0]))
    return ", ".join(
        f"{name} {range_text(least, most)}" if least != most else f"{name} {least:,}"
        for name, (least, most) in ordered
        if most
    )


def range_text(least: int, most: int) -> int | str:
    """Return a count, or a range such as `10 to 50` if the two numbers differ."""
    return least if least == most else f"{least:,} to {most:,}"


T = TypeVar("T")
MOST_ROWS = 50
WORST = 12
"""The maximum number of producers, clients or topics in a plot."""


def cut_rows(rows: Sequence[T], where: str) -> tuple[Sequence[T], str]:
    """Return the first rows and a note about the rest, or "" if there are no more rows.

    `where` is the file or table that contains all rows.
    """
    if len(rows) <= MOST_ROWS:
        return rows, ""
    return rows[:MOST_ROWS], f"The first {MOST_ROWS} of {len(rows):,}; all are in {where}."


def worst_and_others(rows: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    """Split sorted rows into the worst rows and the others, which a table shows as one row.

    A single other row is not split off.
    """
    return (rows, ()) if len(rows) <= WORST + 1 else (rows[:WORST], rows[WORST:])


def moment_text(milliseconds: int) -> str:
    """Return a time such as `2026-11-21 09:30:00 UTC`, or `no date` outside the calendar."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "no date"


def moment_and_ms(milliseconds: int | None) -> str:
    """Return a time such as `1970-01-01 00:00:00 UTC (0)`, or `none` for None."""
    return "none" if milliseconds is None else f"{moment_text(milliseconds)} ({milliseconds})"


_MOST = 32
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


def printable(name: str) -> str:
    """Return the name with control characters escaped, because a terminal would interpret them."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def shortened(name: str) -> str:
    """Return the name's beginning and end, for a label next to a plot."""
    width = sum(2 if east_asian_width(c) in "WF" else 1 for c in name)
    kept = _MOST // 2 * len(name) // max(width, 1)
    return name if width <= _MOST else f"{name[:kept]}…{name[-kept + 1 :]}"


def duration(milliseconds: int) -> str:
    """Return a duration such as `1 h` or `30 s`."""
    for size, unit in _UNITS:
        if milliseconds >= size and milliseconds % size == 0:
            return f"{milliseconds // size} {unit}"
    return f"{milliseconds} ms"


def owner_in_words(topic: Mapping[str, Any]) -> str:
    """Return a sentence that names the owner of a topic in a summary; an empty string if it has no owner."""
    return f"Owner: {printable(topic['owner'])}." if "owner" in topic else ""
