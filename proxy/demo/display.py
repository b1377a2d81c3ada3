"""Shows the demo as a live table in a terminal, and as lines for other outputs."""

from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sluicegate.config.files.source import printable
from sluicegate.proxy.demo.results import REJECTIONS_KEPT, DemoResults, Rejection
from sluicegate.proxy.reporting.metrics.counters import Counters

_FRAMES_A_SECOND = 4
_REASON_WIDTH = 24  # a constant width, so that no column moves when rejections appear
_LAST_LINES = 3 * REJECTIONS_KEPT


class Display(Protocol):
    """Shows the state of the demo at intervals of `seconds`."""

    seconds: float

    def update(self, counters: Counters) -> None:
        """Show the current state."""

    def end(self, counters: Counters) -> None:
        """Show the last state."""


def display_on(console: Console, results: DemoResults) -> Display:
    """Return a live table if the console can redraw it, or lines otherwise."""
    return (
        LiveTable(console, results)
        if console.is_terminal and not console.is_dumb_terminal
        else LineDisplay(console, results)
    )


class LineDisplay:
    """Prints one line for each rejection, and the counts every two seconds, for pipes, logs and dumb terminals."""

    seconds = 2.0

    def __init__(self, console: Console, results: DemoResults) -> None:
        self._console = console
        self._results = results

    def update(self, counters: Counters) -> None:
        for rejection in self._results.new_rejections():
            for line in _lines_about(rejection):
                self._console.print(line)
        self._console.print(_counts(counters))

    def end(self, counters: Counters) -> None:
        self.update(counters)


class LiveTable:
    """A table that is redrawn in place, with the latest rejections below it."""

    seconds = 1 / _FRAMES_A_SECOND

    def __init__(self, console: Console, results: DemoResults) -> None:
        self._results = results
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
        self._has_started = False

    def update(self, counters: Counters) -> None:
        if not self._has_started:
            self._live.start()
            self._has_started = True
        self._live.update(self._drawn(counters), refresh=True)

    def end(self, counters: Counters) -> None:
        self.update(counters)
        self._live.stop()

    def _drawn(self, counters: Counters) -> Group:
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
        for name in ("producer", "topic"):
            table.add_column(name, no_wrap=True, max_width=20, overflow="ellipsis")
        for name in ("delivered", "rejected"):
            table.add_column(name, justify="right", no_wrap=True, min_width=len(name))
        table.add_column("last reason", no_wrap=True, min_width=_REASON_WIDTH, overflow="ellipsis")
        for row in self._results.rows():
            table.add_row(
                Text(printable(row.client_id)),
                Text(printable(row.topic)),
                Text("-" if row.delivered is None else f"{row.delivered:,}", "green"),
                Text(f"{row.rejected:,}", "red" if row.rejected else ""),
                Text(row.why),
            )
        last = [line for rejection in reversed(tuple(self._results.rejections)) for line in _lines_about(rejection)]
        last += [Text(" ")] * (_LAST_LINES - len(last))  # keeps the height constant
        return Group(table, Text(), _counts(counters), Text(), Text("Last rejections:", "bold"), *last)


def _lines_about(rejection: Rejection) -> list[Text]:
    of = f"{rejection.bad_records} of {rejection.records} records"
    about = printable(f"{rejection.client_id} to {rejection.topic}-{rejection.partition}: {rejection.error}, {of}")
    return [_line(("rejected ", "red"), about), *(_line(f"  {detail}") for detail in rejection.details)]


def _line(*parts: str | tuple[str, str]) -> Text:
    """Return a line that is cut at the terminal's width."""
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _counts(counters: Counters) -> Text:
    return _line(
        ("forwarded ", "green"),
        f"{counters.accepted_records:,} records in {counters.accepted_partitions:,} batches; ",
        ("rejected ", "red"),
        f"{counters.batch_counts['sluicegate_rejected_batches'].total():,} batches",
    )
