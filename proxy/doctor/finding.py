"""What an examination finds: about what, how bad it is, and what to do."""

from dataclasses import dataclass
from enum import Enum


class Level(Enum):
    """How bad a finding is, and what it is called where it is shown."""

    GOOD = "ok"
    NOTE = "note"
    """Worth knowing; nothing has to be done."""
    WARNING = "warning"
    """Clients can be served, but not as somebody might expect."""
    FAULT = "mend"
    """Clients, or some of them, cannot be served before this is mended."""
    UNSEEN = "not seen"
    """It could not be looked at; the finding says why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the table: `about` what, what was `found`, and the `advice` where something is to be done."""

    about: str
    level: Level
    found: str
    advice: str = ""


def some_of(names: list[str], most: int = 3) -> str:
    """A few names, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
