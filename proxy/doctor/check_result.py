"""The result of a check: its subject, how bad it is, and the remedy."""

from dataclasses import dataclass
from enum import Enum


class Level(Enum):
    """How bad a result is; the value is shown to people and in JSON."""

    OK = "ok"
    NOTE = "note"
    """For information; no action is needed."""
    WARNING = "warning"
    """Clients can be served, but perhaps not as intended."""
    FAILURE = "failure"
    """The proxy does not start, or some clients or functions fail, until this is fixed."""
    NOT_CHECKED = "not checked"
    """The check was not possible; `found` says why."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One row of the report: `about` is its subject, `found` the result, `advice` the remedy if one is needed."""

    about: str
    level: Level
    found: str
    advice: str = ""


def names_shortened(names: list[str], most: int = 3) -> str:
    """Return the first names, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
