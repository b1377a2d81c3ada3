"""The result of a check, with its subject, level and remedy."""

from dataclasses import dataclass
from enum import Enum


class Level(Enum):
    """The severity of a result. Both people and programs see its value."""

    OK = "ok"
    NOTE = "note"
    """For information. No action is needed."""
    WARNING = "warning"
    """The proxy can serve clients, but perhaps not as intended."""
    FAILURE = "failure"
    """The proxy does not start, or some clients or functions fail, until this is fixed."""
    NOT_CHECKED = "not checked"
    """The check was not possible. `found` gives the reason."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One row of the report.

    `about` is its subject, `found` is the result, and `advice` is the remedy if one is needed.
    """

    about: str
    level: Level
    found: str
    advice: str = ""


def names_shortened(names: list[str], most: int = 3) -> str:
    """Return the first `most` names and the number of the remaining names, as a phrase."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
