"""Why a connection is not being read."""

from collections.abc import Callable
from enum import Enum, auto
from typing import Protocol


class PauseReason(Enum):
    """One reason; reading goes on when none is left."""

    CONNECTING = auto()
    OTHER_SIDE_FULL = auto()
    RESPONSES_UNREAD = auto()
    TURN_OVER = auto()
    REJECTIONS = auto()
    VALIDATING = auto()
    QUARANTINING = auto()
    ASKING = auto()
    SETTINGS = auto()
    MEMORY = auto()
    IN_FLIGHT = auto()
    IN_FLIGHT_IN_ALL = auto()
    QUOTA = auto()
    QUOTA_TURN = auto()
    DRAINING = auto()
    TURNED_AWAY = auto()


PauseListener = Callable[[PauseReason, bool], None]
"""Told of each hold that begins (True) or ends."""


class Pausable(Protocol):
    """A connection that can be paused."""

    def pause(self, reason: PauseReason) -> None:
        """Stop reading until `resume(reason)`."""

    def resume(self, reason: PauseReason) -> None:
        """End a pause; reading resumes if no other reason is left."""
