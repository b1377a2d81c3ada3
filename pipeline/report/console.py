"""Renders tables for terminals of any width. Numbers are never truncated.

If a table is too wide, its text is folded. If it is still too wide, columns that contain only zeros are dropped. If
that is not enough either, each row becomes a separate table with one line per column.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.table import Table
from rich.text import Text

Cell = str | int
_PADDING, _EDGE = 3, 1  # a column's padding with its border, and the last border
_FOLDED_AT_LEAST = 12
"""The minimum width of a folded word, such as a topic's name, in characters."""


@dataclass(frozen=True, slots=True)
class ConsoleTable:
    """A table for the terminal. Each of the `rows` contains a cell for each of `heads`. Numbers are right-aligned and
    have thousands separators.
    """

    title: str
    heads: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the table within the available width."""
        yield rich_table(self, options.max_width)


def rich_table(table: ConsoleTable, width: int) -> Table:
    """Return a `rich` table that is at most `width` characters wide."""
    for each in (table, _without_zeros(table)):
        widths = _widths(each, width)
        if widths is not None:
            return _across(each, widths)
    return _transposed(table, width)


def _across(table: ConsoleTable, widths: Sequence[int]) -> Table:
    found = Table(title=table.title or None, caption=table.caption or None)
    for number, head in enumerate(table.heads):
        justify: JustifyMethod = "right" if _is_of_numbers(table, number) else "left"
        found.add_column(Text(head), justify=justify, width=widths[number], overflow="fold")
    for row in table.rows:
        found.add_row(*(Text(_text(cell)) for cell in row))  # Text, so that brackets are not parsed as markup
    return found


def _transposed(table: ConsoleTable, width: int) -> Table:
    first = max(len(head) for head in table.heads)
    room = width - first - 2 * _PADDING - _EDGE
    found = Table(title=table.title or None, caption=table.caption or None, show_header=False)
    found.add_column(width=first if room >= _FOLDED_AT_LEAST else None, overflow="fold")
    found.add_column(overflow="fold")
    for row in table.rows:
        for head, cell in zip(table.heads, row, strict=True):
            if cell not in (0, ""):
                found.add_row(Text(head), Text(_text(cell)))
        found.add_section()
    return found


def _without_zeros(table: ConsoleTable) -> ConsoleTable:
    zeros = [i for i in range(len(table.heads)) if table.rows and all(row[i] == 0 for row in table.rows)]
    if not zeros:
        return table
    kept = [i for i in range(len(table.heads)) if i not in zeros]
    note = f"Columns with 0 in all rows: {', '.join(table.heads[i] for i in zeros)}."
    return replace(
        table,
        heads=tuple(table.heads[i] for i in kept),
        rows=[[row[i] for i in kept] for row in table.rows],
        caption=f"{table.caption} {note}".strip(),
    )


def _widths(table: ConsoleTable, width: int) -> list[int] | None:
    """Return the width of each column without truncation; None if the table does not fit."""
    columns = [[head, *(_text(row[i]) for row in table.rows)] for i, head in enumerate(table.heads)]
    found = [max(map(cell_len, texts)) for texts in columns]
    least = [max(_least(text) for text in texts) for texts in columns]
    excess = sum(found) + _PADDING * len(found) + _EDGE - width
    for _ in range(excess):
        widest = max(range(len(found)), key=lambda i: (found[i] > least[i], found[i]))
        if found[widest] <= least[widest]:
            return None
        found[widest] -= 1
    return found


def _least(text: str) -> int:
    """Return the smallest width that keeps numbers and times whole and folds all other words."""
    return max((_least_of_word(word) for word in text.split()), default=1)


def _least_of_word(word: str) -> int:
    whole = cell_len(word)
    return min(whole, _FOLDED_AT_LEAST) if any(letter.isalpha() for letter in word) else whole


def _is_of_numbers(table: ConsoleTable, number: int) -> bool:
    return bool(table.rows) and all(isinstance(row[number], int) for row in table.rows)


def _text(cell: Cell) -> str:
    return f"{cell:,}" if isinstance(cell, int) else cell
