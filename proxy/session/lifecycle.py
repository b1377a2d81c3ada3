"""A session's lifecycle. A table of events determines the stage, which only advances."""

from enum import Enum, IntEnum, auto


class Stage(IntEnum):
    """The stage of a session."""

    CONNECTING = auto()
    """The client is connected. Its first request will connect a broker."""
    OPEN = auto()
    """Both sides are connected."""
    DRAINING = auto()
    """No more requests are read. The session ends when the in-flight requests are complete."""
    HALF_CLOSED = auto()
    """The client has ended its output. Its last request has not been forwarded yet."""
    CLOSING = auto()
    """The output to the broker has ended. Responses may still arrive."""
    ENDED = auto()
    """Both sides are closed."""


class LifecycleEvent(Enum):
    """The events that change the stage."""

    BROKER_CONNECTED = "the connection to the broker is up"
    DRAIN_REQUESTED = "the proxy stops, or the client violated the protocol; requests in flight are completed"
    LAST_REQUEST_BUSY = "the client has ended its requests, and the last one is still being handled"
    REQUESTS_ENDED = "the output to the broker has ended"
    BOTH_CLOSED = "both connections are closed"


_CONNECTED, _DRAIN, _BUSY, _REQUESTS_ENDED, _BOTH_CLOSED = LifecycleEvent
_CONNECTING, _OPEN, _DRAINING, _HALF_CLOSED, _CLOSING, _ENDED = Stage

# Events that are not listed for a stage change nothing.
RULES: dict[Stage, dict[LifecycleEvent, Stage]] = {
    _CONNECTING: {_CONNECTED: _OPEN, _DRAIN: _DRAINING, _BOTH_CLOSED: _ENDED},
    _OPEN: {_DRAIN: _DRAINING, _BUSY: _HALF_CLOSED, _REQUESTS_ENDED: _CLOSING, _BOTH_CLOSED: _ENDED},
    _DRAINING: {_BUSY: _HALF_CLOSED, _REQUESTS_ENDED: _CLOSING, _BOTH_CLOSED: _ENDED},
    _HALF_CLOSED: {_REQUESTS_ENDED: _CLOSING, _BOTH_CLOSED: _ENDED},
    _CLOSING: {_BOTH_CLOSED: _ENDED},
    _ENDED: {},
}


class Lifecycle:
    """The stage of one session."""

    def __init__(self) -> None:
        self.stage = Stage.CONNECTING

    def apply(self, event: LifecycleEvent) -> bool:
        """Apply an event, and return whether the stage changed."""
        stage = RULES[self.stage].get(event)
        if stage is None:
            return False
        self.stage = stage
        return True
