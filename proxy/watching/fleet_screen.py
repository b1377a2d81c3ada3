"""The screen of `sluicegate top --fleet`, which shows a cluster's announced proxies and their sum."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sluicegate.proxy.reporting.bounded_text import printable
from sluicegate.proxy.watching.formatting import iso_time, rate_text

_RATES = {"produce_requests": "requests", "accepted_records": "records", "violations": "violations"}
_STYLES = {"serving": "green", "not serving": "red", "stale": "red"}
_LEAST_NAME = 16  # the number of characters on a narrow terminal
_LEAST_STATE = len("needs attention")


def fleet_screen(fleet: Mapping[str, Any]) -> RenderableType:
    """Return the whole screen for a response of `/api/fleet`. A terminal with 80 columns is wide enough."""
    now_ms, proxies = fleet["time_ms"], fleet["proxies"]
    title = f"{len(proxies)} proxies at {iso_time(now_ms)}, rates per second"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("proxy", overflow="fold", min_width=_LEAST_NAME)
    for column in (*_RATES.values(), "conns", "age"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("state", overflow="fold", min_width=_LEAST_STATE)
    for each in proxies:
        table.add_row(*_row(each, now_ms))
    fresh = [each for each in proxies if not each["is_stale"]]
    if len(fresh) > 1:
        rates = (rate_text(sum(each["rates"].get(name, 0) for each in fresh)) for name in _RATES)
        connections = sum(each["counters"].get("connections", 0) for each in fresh)
        stale = len(proxies) - len(fresh)
        table.add_row("all", *rates, f"{connections:,}", "", f"without {stale} stale" if stale else "", style="bold")
    findings = [Text(f"{each['code']}: {printable(each['text'])}", "yellow") for each in fleet["findings"]]
    return Group(*findings, table)


def _row(each: Mapping[str, Any], now_ms: int) -> list[RenderableType]:
    is_stale = each["is_stale"]
    rates = ("-" if is_stale or name not in each["rates"] else rate_text(each["rates"][name]) for name in _RATES)
    connections = each["counters"].get("connections")
    state = "stale" if is_stale else each["state"]
    conditions = f" ({', '.join(each['conditions'])})" if each["conditions"] else ""
    return [
        Text(printable(each["name"])),
        *rates,
        "-" if connections is None or is_stale else f"{connections:,}",
        f"{max(0, now_ms - each['seen_ms']) / 1000:.0f} s",
        Text(printable(f"{state}{conditions}"), _STYLES.get(state, "yellow")),
    ]
