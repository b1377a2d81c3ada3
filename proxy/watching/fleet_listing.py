"""Formats a cluster's proxies for `sluicegate fleet --admin`."""

from collections.abc import Iterator, Mapping
from typing import Any

from sluicegate.proxy.reporting.bounded_text import printable
from sluicegate.proxy.watching.formatting import iso_time


def lines_of(fleet: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines for a fleet that the API returned: findings first, then a line for each proxy."""
    proxies = fleet["proxies"]
    stale = sum(each["is_stale"] for each in proxies)
    yield f"{len(proxies)} proxies" + (f", {stale} of them stale" if stale else "")
    for finding in fleet["findings"]:
        yield printable(f"attention: {finding['text']}")
    for each in proxies:
        state = f"stale since {iso_time(each['seen_ms'])}" if each["is_stale"] else each["state"]
        conditions = f" ({', '.join(each['conditions'])})" if each["conditions"] else ""
        counters = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in each["counters"].items())
        yield printable(
            f"{each['name']}: {state}{conditions}; admin {each['admin'] or 'none'}, sluicegate {each['sluicegate']}, "
            f"policies {each['policies']}; {counters}"
        )
