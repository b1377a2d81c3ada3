"""Formats the history of changes for `sluicegate history`."""

from collections.abc import Iterator, Mapping
from typing import Any

from sluicegate.proxy.reporting.bounded_text import printable
from sluicegate.proxy.watching.formatting import iso_time

_THOUSAND = 1000


def lines_of(history: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines for a history that the API returned.

    The first line states when the history begins, and whether changes are missing.
    """
    changes = history["changes"]
    missing = "" if history["is_complete"] else "; not all changes could be read in time: request fewer days"
    yield f"{len(changes)} changes since {iso_time(history['since_ms'])}{missing}"
    for change in changes:
        actor = change["actor"]
        yield ""
        yield printable(f"{iso_time(change['time_ms'])} {change['what']}, by {actor['name']} ({actor['address']})")
        for line in change["changes"]:
            yield printable(f"  {line['effect']}: {line['text']}")
        taken = (f"{each['proxy']} ({_after(each['time_ms'] - change['time_ms'])})" for each in change["taken"])
        yield printable(f"  taken by {', '.join(taken)}")


def _after(ms: int) -> str:
    """Return a delay in seconds. It may be negative, because machines' clocks differ."""
    return f"{ms / _THOUSAND:+.1f} s"
