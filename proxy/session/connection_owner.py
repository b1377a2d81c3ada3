"""Who is told what happens to a connection."""

from typing import TYPE_CHECKING, Protocol

from sluicegate.protocol.errors import SenderError

if TYPE_CHECKING:
    from sluicegate.proxy.session.connection import Connection


class ConnectionOwner(Protocol):
    """One for both connections of a session."""

    def on_open(self, connection: "Connection") -> None:
        """The connection is up."""

    def on_bytes_taken(self, connection: "Connection") -> None:
        """All bytes that have arrived were taken, or a hold stopped them; not told where the reader is settled."""

    def on_sender_error(self, connection: "Connection", error: SenderError) -> None:
        """What came in breaks the protocol."""

    def on_our_fault(self, connection: "Connection", error: Exception) -> None:
        """Something of ours failed over what came in."""

    def on_eof(self, connection: "Connection") -> None:
        """The peer will send no more, and all it sent was taken."""

    def on_lost(self, connection: "Connection", error: Exception | None) -> None:
        """The connection is gone."""

    def on_full(self, connection: "Connection", full: bool) -> None:
        """Its write buffer has filled, or has drained again."""


class _NoOwner:
    """Who is told what happens to a connection when nobody is there any more."""

    def on_open(self, connection: "Connection") -> None:
        connection.abort()

    def on_bytes_taken(self, connection: "Connection") -> None: ...

    def on_sender_error(self, connection: "Connection", error: SenderError) -> None: ...

    def on_our_fault(self, connection: "Connection", error: Exception) -> None: ...

    def on_eof(self, connection: "Connection") -> None: ...

    def on_lost(self, connection: "Connection", error: Exception | None) -> None: ...

    def on_full(self, connection: "Connection", full: bool) -> None: ...


NO_OWNER = _NoOwner()
