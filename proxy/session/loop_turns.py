"""Lets other connections go first: when much has come on one at once, or the event loop is late."""

from functools import partial
from typing import Protocol

from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.outlets import LoopCalls
from sluicegate.proxy.session.pause_reason import PauseReason


class Lateness(Protocol):
    """Knows how long the event loop has been busy (`LoopTurn`)."""

    def is_late(self) -> bool: ...


class LoopTurns:
    """Of one session, whose `client` has the address by which it takes turns."""

    def __init__(self, lateness: Lateness, loop: LoopCalls, client: Connection) -> None:
        self._lateness = lateness
        self._loop = loop
        self._client = client

    def is_late(self) -> bool:
        """Return whether the event loop has not looked at its sockets for long."""
        return self._lateness.is_late()

    def end(self, connection: Connection) -> None:
        """Read no more of a connection before others had their turn."""
        connection.pause(PauseReason.TURN_OVER)
        self._loop.later(partial(connection.turn_comes, PauseReason.TURN_OVER), self._client.address)
