"""The life of a session: one stage that only rises. What happens when is a table; nothing else may change a stage."""

from enum import Enum, IntEnum, auto


class Stage(IntEnum):
    """How far a session has come."""

    CONNECTING = auto()
    """The client is here. A broker is called when it asks for something, and has not come yet."""
    OPEN = auto()
    """Both are here."""
    DRAINING = auto()
    """No more requests are taken; it ends when all that came before has been answered."""
    LEAVING = auto()
    """No more requests will come, and the last of those that have is still to be forwarded."""
    CLOSING = auto()
    """The broker has been told that no more will come; answers may."""
    ENDED = auto()
    """Both have gone."""


class LifecycleEvent(Enum):
    """What a session's stage depends on."""

    BROKER_CONNECTED = "the connection to the broker is up"
    DRAIN_REQUESTED = "the proxy stops, or the client has broken the protocol: what is in flight is still answered"
    LAST_REQUEST_BUSY = "no more requests will come, while one waits for a validation"
    REQUESTS_ENDED = "no more requests will come, and the broker has been told"
    BOTH_CLOSED = "both connections are closed"


_CAME, _TO_END, _BUSY, _SAID, _GONE = LifecycleEvent
_CONNECTING, _OPEN, _DRAINING, _LEAVING, _GOODBYE, _ENDED = Stage

# What is not listed changes nothing.
RULES: dict[Stage, dict[LifecycleEvent, Stage]] = {
    _CONNECTING: {_CAME: _OPEN, _TO_END: _DRAINING, _GONE: _ENDED},
    _OPEN: {_TO_END: _DRAINING, _BUSY: _LEAVING, _SAID: _GOODBYE, _GONE: _ENDED},
    _DRAINING: {_BUSY: _LEAVING, _SAID: _GOODBYE, _GONE: _ENDED},
    _LEAVING: {_SAID: _GOODBYE, _GONE: _ENDED},
    _GOODBYE: {_GONE: _ENDED},
    _ENDED: {},
}


class Lifecycle:
    """One session's stage."""

    def __init__(self) -> None:
        self.stage = Stage.CONNECTING

    def apply(self, event: LifecycleEvent) -> bool:
        """Whether that changes the stage."""
        stage = RULES[self.stage].get(event)
        if stage is None:
            return False
        self.stage = stage
        return True
