"""The one way in which a request waits in the middle of its way: for an answer, a thread, or whoever else.

The client's connection is held meanwhile, so that nothing overtakes. One guard stands around whatever goes on
afterwards: an error there ends the session with a line, so that no client waits for ever.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.pause_reason import PauseReason

T = TypeVar("T")
Tell = Callable[[T], None]
"""What is waited for is here. Called once, on the event loop; a second call is none."""


class WaitingSession(Protocol):
    """What of a session a wait has to do with."""

    client: Connection
    broker: Connection

    def request_settled(self) -> None:
        """What was waited for has been dealt with."""

    def on_our_fault(self, connection: Connection, error: BaseException) -> None:
        """End it, and say why."""


class Waiting:
    """What one session's request waits for: one thing at a time, because its requests are taken in turn."""

    def __init__(self, session: WaitingSession) -> None:
        self._session = session
        self._hold: PauseReason | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether something is waited for."""
        return self._hold is not None

    def is_for(self, hold: PauseReason) -> bool:
        """Whether that is what is waited for."""
        return self._hold is hold

    def give_up(self) -> None:
        """What is waited for is no longer wanted."""
        self._hold = None

    def until(self, hold: PauseReason, ask: Callable[[Tell[T]], None], go_on: Callable[[T], None]) -> None:
        """Hold the client, and `ask`, which is handed whom to tell what comes of it; then `go_on` with that.

        `go_on` may wait for the next thing. It is not called where the broker has gone meanwhile.
        """
        self._hold = hold
        self._session.client.pause(hold)
        ask(partial(self._told, hold, go_on))

    def _told(self, hold: PauseReason, go_on: Callable[[T], None], found: T) -> None:
        if self._hold is not hold:
            return
        session = self._session
        try:
            self._hold = None
            if not session.broker.closed:
                go_on(found)
            session.request_settled()
            if self._hold is not hold:  # else it waits for more of the same kind
                session.client.resume(hold)
        except BaseException as error:
            session.on_our_fault(session.client, error)
            if not isinstance(error, Exception):
                raise
