"""Formats figures, times and diagnoses for a terminal."""

from datetime import UTC, datetime
from typing import Any

from sluicegate.proxy.reporting.bounded_text import printable

OUTCOMES = {
    "reject": "rejected",
    "observe": "forwarded",
    "fix": "fixed",
    "mark": "forwarded with marks",
    "quarantine": "quarantined",
    "copy": "forwarded, bad records copied",
    "rehearse": "forwarded (rehearsed bound exceeded)",
}
_NO_CLIENT_ID = "(no client id)"
_UNITS = ("B", "kB", "MB", "GB", "TB")
_THOUSAND = 1000


def named(name: str | None) -> str:
    """Return a name without control characters."""
    return _NO_CLIENT_ID if name is None else printable(name) or "(empty)"


def rate(number: float) -> str:
    """Return a rate with few digits: 0, 0.4, 12.5, 1,234."""
    return f"{number:,.0f}" if number >= 100 or number == 0 else f"{number:.1f}"


def size(number: float) -> str:
    """Return a number of bytes with its unit."""
    unit = 0
    while number >= _THOUSAND and unit < len(_UNITS) - 1:
        number /= _THOUSAND
        unit += 1
    return f"{rate(number)} {_UNITS[unit]}"


def moment(ms: int) -> str:
    """Return a time of the proxy's clock (Unix ms) in ISO 8601, UTC."""
    return datetime.fromtimestamp(ms / _THOUSAND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def client_of(event: dict[str, Any]) -> str:
    """Return the software, principal and address of an event's client."""
    software = " ".join(text for text in (event.get("software_name"), event.get("software_version")) if text)
    known = [text for text in (software, event.get("principal"), event.get("peer")) if text]
    return printable(", ".join(known))


def client_owner_of(event: dict[str, Any]) -> str:
    """Return the owner of an event's client; empty without one."""
    owner = event.get("client_owner")
    if not isinstance(owner, dict) or not owner.get("team"):
        return ""
    contact = f" ({owner['contact']})" if owner.get("contact") else ""
    return printable(f"{owner['team']}{contact}")


def diagnosis(event: dict[str, Any]) -> str:
    """Return the diagnosis of an event, with its first bad record if it has one."""
    rehearsed = [
        f"{one['key']} of {one['max_ms']} ms would reject {one['bad_records']}" for one in event.get("rehearsed", ())
    ]
    if rehearsed:
        return printable("; ".join(rehearsed))
    place = f"partition {event.get('partition')}"
    samples = event.get("samples") or ()
    if not samples:
        return printable(f"{place}: {event.get('message') or event.get('reason')}")
    sample = samples[0]
    words = sample.get("diagnosis") or sample.get("reason")
    time = f", timestamp {sample.get('timestamp')}" if "rule" not in sample and "diagnosis" in sample else ""
    return printable(f"{place}, record {sample.get('index')}{time}: {words}")
