"""Figures, times and diagnoses as a person reads them in a terminal."""

from datetime import UTC, datetime
from typing import Any

from sluicegate.proxy.reporting.bounded_text import printable

BECAME = {
    "reject": "rejected",
    "observe": "forwarded all the same",
    "fix": "forwarded with other times",
    "quarantine": "rejected, bad records kept elsewhere",
    "rehearse": "forwarded: only bounds on trial would reject it",
}
_NOBODY = "(no client id)"
_UNITS = ("B", "kB", "MB", "GB", "TB")
_THOUSAND = 1000


def named(name: str | None) -> str:
    """What a client calls itself or a topic, harmless to any terminal."""
    return _NOBODY if name is None else printable(name) or "(empty)"


def rate(number: float) -> str:
    """Few digits: 0, 0.4, 12.5, 1,234."""
    return f"{number:,.0f}" if number >= 100 or number == 0 else f"{number:.1f}"


def size(number: float) -> str:
    """Bytes with a unit."""
    unit = 0
    while number >= _THOUSAND and unit < len(_UNITS) - 1:
        number /= _THOUSAND
        unit += 1
    return f"{rate(number)} {_UNITS[unit]}"


def moment(ms: int) -> str:
    """A time that the proxy has read off its clock (Unix ms), UTC."""
    return datetime.fromtimestamp(ms / _THOUSAND, UTC).strftime("%Y-%m-%d %H:%M:%S")


def who(event: dict[str, Any]) -> str:
    """What is known of a client besides its id."""
    software = " ".join(text for text in (event.get("software_name"), event.get("software_version")) if text)
    known = [text for text in (software, event.get("principal"), event.get("peer")) if text]
    return printable(", ".join(known))


def diagnosis(event: dict[str, Any]) -> str:
    """What is wrong, in words, with the first bad record where there is one."""
    trial = [
        f"{one['key']} of {one['max_ms']} ms would reject {one['bad_records']}" for one in event.get("rehearsed", ())
    ]
    if trial:
        return printable("; ".join(trial))
    place = f"partition {event.get('partition')}"
    samples = event.get("samples") or ()
    if not samples:
        return printable(f"{place}: {event.get('message') or event.get('reason')}")
    sample = samples[0]
    words = sample.get("diagnosis") or sample.get("reason")
    time = f", timestamp {sample.get('timestamp')}" if "rule" not in sample and "diagnosis" in sample else ""
    return printable(f"{place}, record {sample.get('index')}{time}: {words}")
