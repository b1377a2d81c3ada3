"""Formats numbers, times and diagnoses for a terminal."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sluicegate.proxy.live.live_state import ViolationGroupState
from sluicegate.proxy.reporting.bounded_text import printable
from sluicegate.proxy.reporting.events.violation_event import REHEARSE
from sluicegate.validation.outcome import Change, Copies, Outcome

NOT_STORED = "cannot be stored, retrying"
_RETRYING = "retrying"
_IN_WORDS = {
    "quarantined": "rejected, bad records quarantined",
    "copied": "accepted, bad records copied",
    "fixed": "accepted, timestamps fixed",
    "marked": "accepted with marks",
    "rehearse": "accepted (rehearsed bound exceeded)",
    "resend": "to be sent again",
    "unknown": "forwarded, outcome unknown",
}
# A client that has not retried for this time has given up or makes progress again.
_RETRYING_MS = 60_000
_NO_CLIENT_ID = "(no client id)"
_UNITS = ("B", "kB", "MB", "GB", "TB")
_THOUSAND = 1000


def printable_name(name: str | None) -> str:
    """Return a name without control characters."""
    return _NO_CLIENT_ID if name is None else printable(name) or "(empty)"


def rate_text(number: float) -> str:
    """Format a rate with few digits: 0, 0.4, 12.5, 1,234."""
    return f"{number:,.0f}" if number >= 100 or number == 0 else f"{number:.1f}"


def size_text(number: float) -> str:
    """Format a number of bytes with its unit."""
    unit = 0
    while number >= _THOUSAND and unit < len(_UNITS) - 1:
        number /= _THOUSAND
        unit += 1
    return f"{rate_text(number)} {_UNITS[unit]}"


def iso_time(ms: int) -> str:
    """Format a time of the proxy's clock (Unix time, ms) in ISO 8601, in UTC."""
    return datetime.fromtimestamp(ms / _THOUSAND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def record_time(ms: int) -> str:
    """Format a record's time in ISO 8601, or as a number if there is no such date: a client may send any time."""
    try:
        return iso_time(ms)
    except (ValueError, OverflowError, OSError):
        return f"{ms} ms"


def outcome_word(event: Mapping[str, Any]) -> str:
    """Return the outcome of an event's or a group's batches, in one word."""
    copies, changes = event.get("copies"), event.get("changes") or ()
    if event["outcome"] == Outcome.RESEND:
        return _RETRYING if copies == Copies.NOT_STORED else Outcome.RESEND
    if event["outcome"] == Outcome.REJECTED:
        return Copies.QUARANTINED if copies == Copies.QUARANTINED else Outcome.REJECTED
    if event["outcome"] == Outcome.ACCEPTED:
        done = [change for change in changes if change != Change.MASKED]
        return str(copies or (done[0] if done else Outcome.ACCEPTED))
    return printable(str(event["outcome"]))


def outcome_in_words(event: Mapping[str, Any]) -> str:
    """Return the outcome of an event's or a group's batches, in a few words."""
    word = outcome_word(event)
    if word == _RETRYING:
        return NOT_STORED
    if word == Outcome.ACCEPTED and event.get("mode") == REHEARSE:
        return _IN_WORDS[REHEARSE]
    return _IN_WORDS.get(word, word)


def main_reason(groups: Sequence[ViolationGroupState], now_ms: int) -> str:
    """Return the most frequent reason.

    If clients are retrying batches that cannot be stored now, only those batches count.
    """
    retried = [each for each in groups if outcome_word(each) == _RETRYING and now_ms - each["last_ms"] <= _RETRYING_MS]
    most = max(retried or groups, key=lambda each: each["batches"], default=None)
    if most is None:
        return ""
    return f"{printable_name(most['reason'])} ({NOT_STORED})" if retried else printable_name(most["reason"])


def client_of(event: dict[str, Any]) -> str:
    """Return the software, principal and address of an event's client."""
    software = " ".join(text for text in (event.get("software_name"), event.get("software_version")) if text)
    known = [text for text in (software, event.get("principal"), event.get("client_address")) if text]
    return printable(", ".join(known))


def client_owner_of(event: dict[str, Any]) -> str:
    """Return the owner of an event's client, or an empty string if there is none."""
    owner = event.get("client_owner")
    if not isinstance(owner, dict) or not owner.get("team"):
        return ""
    contact = f" ({owner['contact']})" if owner.get("contact") else ""
    return printable(f"{owner['team']}{contact}")


def diagnosis_text(event: dict[str, Any]) -> str:
    """Return an event's diagnosis, with its first bad record if it has one."""
    rehearsed = [
        f"{one['key']} of {one['max_ms']} ms would reject {one['bad_records']}" for one in event.get("rehearsed", ())
    ]
    if rehearsed:
        return printable("; ".join(rehearsed))
    place = f"partition {event.get('partition')}"
    samples = event.get("samples") or ()
    if not samples or outcome_word(event) == _RETRYING:
        return printable(f"{place}: {event.get('message') or event.get('reason')}")
    sample = samples[0]
    words = sample.get("diagnosis") or sample.get("reason")
    time = f", timestamp {sample.get('timestamp')}" if "rule" not in sample and "diagnosis" in sample else ""
    return printable(f"{place}, record {sample.get('index')}{time}: {words}")
