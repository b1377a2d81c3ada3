"""The reasons to pause reading from a connection."""

from collections.abc import Callable
from enum import Enum, auto
from typing import Protocol


class PauseReason(Enum):
    """A reason to pause reading. Reading resumes when no reason is left."""

    CONNECTING = auto()
    PEER_BACKPRESSURE = auto()
    CLIENT_NOT_READING = auto()
    FAIR_SHARE = auto()
    REJECTIONS = auto()
    VALIDATING = auto()
    QUARANTINING = auto()
    TOPIC_NAMES = auto()
    STORED_TIMES = auto()
    SETTINGS = auto()
    MEMORY = auto()
    IN_FLIGHT = auto()
    IN_FLIGHT_TOTAL = auto()
    QUOTA = auto()
    QUOTA_QUEUE = auto()
    DRAINING = auto()
    UNSUPPORTED_API = auto()


PauseListener = Callable[[PauseReason, bool], None]
"""Called at the start (True) and the end (False) of each pause."""


class Pausable(Protocol):
    """A connection that can be paused."""

    def pause(self, reason: PauseReason) -> None:
        """Stop reading until `resume(reason)`."""

    def resume(self, reason: PauseReason) -> None:
        """Remove a pause reason. Reading resumes if no other reason is left."""
