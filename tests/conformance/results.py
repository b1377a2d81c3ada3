"""Counts comparisons by family, for the table at the end of a run."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

HEADINGS = ("Kafka", "family", "compared", "equal", "listed", "not listed")


@dataclass
class Results:
    """The counts of one run, by (Kafka version, family)."""

    compared: Counter[tuple[str, str]] = field(default_factory=Counter)
    listed: Counter[tuple[str, str]] = field(default_factory=Counter)
    unlisted: Counter[tuple[str, str]] = field(default_factory=Counter)
    reasons: set[str] = field(default_factory=set)

    def count(self, key: tuple[str, str], equal: bool, difference: str | None) -> None:
        """Count a comparison; `difference` is the listed difference that it showed, or None."""
        self.compared[key] += 1
        if equal:
            return
        if difference is None:
            self.unlisted[key] += 1
        else:
            self.listed[key] += 1
            self.reasons.add(difference)

    def as_lists(self) -> list[Any]:
        """Return the counts as lists that can be sent to another process."""
        counted = ([[*key, count] for key, count in its.items()] for its in (self.compared, self.listed, self.unlisted))
        return [*counted, sorted(self.reasons)]

    def add(self, counts_as_lists: list[Any]) -> None:
        """Add the counts of another process."""
        *counted, reasons = counts_as_lists
        for its, rows in zip((self.compared, self.listed, self.unlisted), counted, strict=True):
            for version, family, count in rows:
                its[version, family] += count
        self.reasons |= set(reasons)

    def table(self) -> list[str]:
        """Return the lines of the table, then each listed difference that occurred, with its reason."""
        rows = [HEADINGS]
        for key, compared in self.compared.items():
            listed, unlisted = self.listed[key], self.unlisted[key]
            numbers = (compared, compared - listed - unlisted, listed, unlisted)
            rows.append((*key, *(f"{number:,}" for number in numbers)))
        widths = [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return [*lines, "", *(f"listed: {reason}" for reason in sorted(self.reasons))]


RESULTS = Results()
