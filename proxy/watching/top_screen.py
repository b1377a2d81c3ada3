"""The screen of `sluicegate top`: proxies and their sum, clients with violations, topics, and the latest violations."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from sluicegate.proxy.live.flow_history import rates_of
from sluicegate.proxy.live.live_state import LiveState, ViolationGroupState
from sluicegate.proxy.live.merged_state import merged_state
from sluicegate.proxy.watching.admin_client import ProxyState
from sluicegate.proxy.watching.formatting import (
    diagnosis_text,
    main_reason,
    outcome_word,
    printable_name,
    rate_text,
    size_text,
)
from sluicegate.validation.outcome import Outcome

_WORST = 8
_LAST = 8
_LEAST_CHARACTERS = 16  # the width of a column for names on a narrow terminal
_LEAST_ADDRESS = 21  # the number of characters in an IPv4 address with a port
_FIGURES = ("requests", "records", "produced", "rejected", "observed", "conns")
_UNBOUNDED = 10_000
_LEAST_IMPORTANT = ("observed", "requests", "produced", "conns")
_STYLES = {"serving": "green", "not serving": "red"}


def top_screen(proxies: Sequence[ProxyState]) -> RenderableType:
    """Return the whole screen."""
    states = [proxy.state for proxy in proxies if proxy.state is not None]
    silent = [proxy for proxy in proxies if proxy.state is None]
    parts: list[RenderableType] = [_Proxies(proxies)]
    parts += [Text(f"{proxy.address}: no response: {printable_name(proxy.reason)}", "red") for proxy in silent]
    if states:
        together = merged_state(states)
        parts += [
            Text(
                f"{each['condition']}: {printable_name(each['detail'])}\n  {each['advice']}",
                _STYLES.get(each["state"], "yellow"),
            )
            for each in together["conditions"]
        ]
        parts += [_clients(together), _topics(together), _last(together)]
    return Group(*parts)


@dataclass(frozen=True, slots=True)
class _Proxies:
    """The table of proxies with their sum. On a narrow terminal it omits columns, the least important first."""

    proxies: Sequence[ProxyState]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = list(_FIGURES)
        for least in _LEAST_IMPORTANT:
            if self._least_width(console, options, columns) <= options.max_width:
                break
            columns.remove(least)
        yield self._table(columns)

    @property
    def _widest_address(self) -> int:
        return max((len(str(proxy.address)) for proxy in self.proxies), default=0)

    def _least_width(self, console: Console, options: ConsoleOptions, columns: Sequence[str]) -> int:
        # otherwise the measurement would be limited to the terminal's width
        unbounded = options.update(max_width=_UNBOUNDED)
        whole = console.measure(self._table(columns), options=unbounded).maximum
        return whole - max(0, self._widest_address - _LEAST_ADDRESS)

    def _table(self, columns: Sequence[str]) -> Table:
        table = Table(title="Rates per second", title_justify="left", box=None, pad_edge=False)
        table.add_column("proxy", overflow="fold", min_width=min(self._widest_address, _LEAST_ADDRESS))
        for column in columns:
            table.add_column(column, justify="right", no_wrap=True)
        table.add_column("state", no_wrap=True)
        for proxy in self.proxies:
            if proxy.state is None:
                table.add_row(str(proxy.address), *["-"] * len(columns), Text("no response", "red"))
            else:
                table.add_row(*_row(str(proxy.address), proxy.state, columns))
        states = [proxy.state for proxy in self.proxies if proxy.state is not None]
        if len(states) > 1:
            table.add_row(*_row("all", merged_state(states), columns), style="bold")
        return table


def _row(name: str, state: LiveState, columns: Sequence[str]) -> list[RenderableType]:
    flow = rates_of(state["history"])
    figures = {
        "requests": rate_text(flow.requests),
        "records": rate_text(flow.records),
        "produced": size_text(flow.size),
        "rejected": rate_text(flow.rejected),
        "observed": rate_text(flow.observed),
        "conns": f"{state['connections']['count']:,}",
    }
    return [name, *(figures[column] for column in columns), Text(state["state"], _STYLES.get(state["state"], "yellow"))]


def _clients(state: LiveState) -> Table:
    """Return the table of clients with violations, most batches first."""
    table = Table(title="Clients with violations since start", title_justify="left", box=None, pad_edge=False)
    table.add_column("client", overflow="fold", min_width=_LEAST_CHARACTERS)
    table.add_column("batches", justify="right", no_wrap=True)
    table.add_column("main reason", overflow="fold")
    counted: dict[str | None, list[ViolationGroupState]] = {}
    for group in state["violation_groups"]:
        counted.setdefault(group["client_id"], []).append(group)
    for name, found in sorted(counted.items(), key=lambda item: -sum(one["batches"] for one in item[1]))[:_WORST]:
        batches = sum(one["batches"] for one in found)
        table.add_row(_name(name), f"{batches:,}", Text(main_reason(found, state["time_ms"])))
    if not counted:
        table.add_row(Text("none", "dim"), "", "")
    return table


def _topics(state: LiveState) -> Table:
    """Return the table of topics, most violations first.

    It shows the rates of the last 10 s and the number of batches with violations.
    """
    table = Table(
        title="Topics: rates per second, batches with violations since start",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    table.add_column("topic", overflow="fold", min_width=_LEAST_CHARACTERS)
    for column in ("batches/s", "bytes/s", "rejected", "observed"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("main reason", overflow="fold")
    violated: dict[str | None, list[ViolationGroupState]] = {}
    for group in state["violation_groups"]:
        violated.setdefault(group["topic"], []).append(group)
    rates = {topic["name"]: topic["rates"] for topic in state["topics"]}

    def sort_key(name: str | None) -> tuple[int, float, str]:
        known = rates.get(name)
        batches = sum(group["batches"] for group in violated.get(name, ()))
        return -batches, 0 if known is None else -known["batches"], name or ""

    for name in sorted({*rates, *violated}, key=sort_key)[:_WORST]:
        known, groups = rates.get(name), violated.get(name, [])
        flow = ("-", "-") if known is None else (rate_text(known["batches"]), size_text(known["size"]))
        rejected = sum(group["batches"] for group in groups if _is_rejected(group))
        observed = sum(group["batches"] for group in groups) - rejected
        topic = Text("unknown topic id") if name is None else _name(name)
        table.add_row(topic, *flow, f"{rejected:,}", f"{observed:,}", Text(main_reason(groups, state["time_ms"])))
    if not table.rows:
        table.add_row(Text("none", "dim"), *[""] * 5)
    return table


def _is_rejected(group: ViolationGroupState) -> bool:
    """Return whether the proxy did not forward a group's batches."""
    return group["outcome"] in (Outcome.REJECTED, Outcome.RESEND)


def _last(state: LiveState) -> Table:
    table = Table(title="Latest violations", title_justify="left", box=None, pad_edge=False)
    table.add_column("time (UTC)", no_wrap=True)
    for column in ("client", "topic"):
        table.add_column(column, overflow="fold", min_width=_LEAST_CHARACTERS)
    table.add_column("outcome", no_wrap=True)
    table.add_column("diagnosis", overflow="fold", min_width=_LEAST_CHARACTERS)
    for event in state["violations"][: -_LAST - 1 : -1]:
        names = _name(event["client_id"]), _name(event["topic"])
        table.add_row(event["time"][11:19], *names, outcome_word(event), Text(diagnosis_text(event)))
    return table


def _name(name: str | None) -> Text:
    """Return the whole name, which the table wraps."""
    return Text(printable_name(name))
