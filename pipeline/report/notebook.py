"""Shows a job's result in a notebook: the conclusion and the table of its report. The plain-text form is one line."""

from html import escape

from sluicegate.pipeline.report.console import ConsoleTable
from sluicegate.pipeline.report.wording import Conclusion

_TEXT_CHARACTERS = 200


class NotebookResult:
    """The base class of results. Subclasses return the conclusion and the table of their job's report."""

    __slots__ = ()

    def conclusion(self) -> Conclusion:
        """Return the finding and the recommendation."""
        raise NotImplementedError

    def table(self) -> ConsoleTable | None:
        """Return the table that the command prints; None if the conclusion contains everything."""
        return None

    def __repr__(self) -> str:
        found = " ".join(self.conclusion().found.split())
        shown = found if len(found) <= _TEXT_CHARACTERS else f"{found[:_TEXT_CHARACTERS]}…"
        return f"<{type(self).__name__}: {shown}>"

    def _repr_html_(self) -> str:
        conclusion, table = self.conclusion(), self.table()
        lines = f"<p><strong>{escape(conclusion.found)}</strong></p><p>{escape(conclusion.to_do)}</p>"
        return lines if table is None or not table.rows else lines + _in_html(table)


def _in_html(table: ConsoleTable) -> str:
    heads = "".join(f"<th>{escape(head)}</th>" for head in table.heads)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.rows)
    caption = escape(f"{table.title}. {table.caption}".strip())
    return f"<table><caption>{caption}</caption><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(cell: str | int) -> str:
    return f'<td style="text-align: right">{cell:,}</td>' if isinstance(cell, int) else f"<td>{escape(cell)}</td>"
