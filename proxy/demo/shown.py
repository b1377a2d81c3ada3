"""How the demo is shown: a table that stays where it is in a terminal, lines anywhere else."""

from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sluicegate.config.source import printable
from sluicegate.proxy.demo.told import REJECTIONS_KEPT, Rejection, Told
from sluicegate.proxy.reporting.metrics.counters import Counters

_FRAMES_A_SECOND = 4
_LAST_LINES = 3 * REJECTIONS_KEPT


class Shown(Protocol):
    """What the demo tells a person, again and again."""

    seconds: float

    def look(self, counters: Counters) -> None:
        """Some time has passed."""

    def end(self, counters: Counters) -> None:
        """It is over."""


def shown_on(console: Console, told: Told) -> Shown:
    """The table where it can be drawn in its place."""
    return LiveTable(console, told) if console.is_terminal and not console.is_dumb_terminal else Lines(console, told)


class Lines:
    """One line for each rejection, and the counts every two seconds: for pipes, logs and dumb terminals."""

    seconds = 2.0

    def __init__(self, console: Console, told: Told) -> None:
        self._console = console
        self._told = told

    def look(self, counters: Counters) -> None:
        for rejection in self._told.new_rejections():
            for line in _lines_about(rejection):
                self._console.print(line)
        self._console.print(_counts(counters))

    def end(self, counters: Counters) -> None:
        self.look(counters)


class LiveTable:
    """Rows keep their places; rejections take the same lines below."""

    seconds = 1 / _FRAMES_A_SECOND

    def __init__(self, console: Console, told: Told) -> None:
        self._told = told
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
        self._is_begun = False

    def look(self, counters: Counters) -> None:
        if not self._is_begun:
            self._live.start()
            self._is_begun = True
        self._live.update(self._drawn(counters), refresh=True)

    def end(self, counters: Counters) -> None:
        self.look(counters)
        self._live.stop()

    def _drawn(self, counters: Counters) -> Group:
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
        for name in ("producer", "topic"):
            table.add_column(name, no_wrap=True, max_width=20, overflow="ellipsis")
        for name in ("delivered", "rejected"):
            table.add_column(name, justify="right", no_wrap=True, min_width=len(name))
        table.add_column("the last time because of", no_wrap=True, overflow="ellipsis")
        for row in self._told.rows():
            table.add_row(
                Text(printable(row.client_id)),
                Text(printable(row.topic)),
                Text("-" if row.delivered is None else f"{row.delivered:,}", "green"),
                Text(f"{row.rejected:,}", "red" if row.rejected else ""),
                Text(row.why),
            )
        last = [line for rejection in reversed(tuple(self._told.rejections)) for line in _lines_about(rejection)]
        last += [Text(" ")] * (_LAST_LINES - len(last))  # as many at the beginning as later
        return Group(table, Text(), _counts(counters), Text(), Text("The last rejections:", "bold"), *last)


def _lines_about(rejection: Rejection) -> list[Text]:
    of = f"{rejection.bad_records} of {rejection.records} records"
    about = printable(f"{rejection.client_id} to {rejection.topic}-{rejection.partition}: {rejection.error}, {of}")
    return [_line(("rejected ", "red"), about), *(_line(f"  {detail}") for detail in rejection.details)]


def _line(*parts: str | tuple[str, str]) -> Text:
    """One that stays one, however narrow the terminal."""
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _counts(counters: Counters) -> Text:
    return _line(
        ("forwarded ", "green"),
        f"{counters.accepted_records:,} records in {counters.accepted_partitions:,} batches; ",
        ("rejected ", "red"),
        f"{counters.batch_counts['sluicegate_rejected_batches'].total():,} batches",
    )
