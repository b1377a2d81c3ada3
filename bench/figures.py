"""Presents measured figures with their goals, as JSON and as tables in docs/performance.md and bench/results."""

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

RESULTS = Path(__file__).with_name("results")


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured figure. `goal` is the maximum of `value` (with `at_least`, the minimum), or None without a goal."""

    figure: str
    load: str
    value: float
    unit: str
    goal: float | None = None
    at_least: bool = False

    @property
    def is_reached(self) -> bool | None:
        """Return whether the goal is reached; None if there is no goal."""
        if self.goal is None:
            return None
        return self.value >= self.goal if self.at_least else self.value <= self.goal


def write_json(file: Path, figures: Iterable[Figure]) -> None:
    """Write the list that other programs read: figure, load, value, unit, goal, met."""
    rows = [asdict(figure) | {"value": round(figure.value, 4), "met": figure.is_reached} for figure in figures]
    for row in rows:
        del row["at_least"]
    file.write_text(json.dumps(rows, indent=1) + "\n")


def goals_table(figures: Iterable[Figure]) -> str:
    """Return a Markdown table of every figure that has a goal."""
    lines = ["| figure | load | value | goal | met |", "| --- | --- | --- | --- | --- |"]
    for f in figures:
        if f.goal is not None:
            bound = "at least" if f.at_least else "at most"
            met = "yes" if f.is_reached else "**no**"
            lines.append(f"| {f.figure} | {f.load} | {f.value:,.2f} {f.unit} | {bound} {f.goal:,.10g} | {met} |")
    return "\n".join(lines)


PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
APPENDIX = RESULTS / "loads.md"
PARTS = RESULTS / "parts.md"


def fill_in(page: Path, name: str, text: str) -> None:
    """Replace the text between `<!-- name -->` and `<!-- /name -->`. Raises ValueError if the markers are missing."""
    before = page.read_text()
    after, found = re.subn(
        rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)",
        lambda marks: f"{marks[1]}\n{text.strip()}\n\n{marks[2]}",
        before,
        flags=re.DOTALL,
    )
    if found != 1:
        raise ValueError(f"{page} has no place for {name}")
    page.write_text(after)
