"""What the event loop's own transports take a connection for: all that comes over TLS, and everything where there are
no native sockets.
"""

import asyncio
from typing import TYPE_CHECKING, cast

from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.outlets import Transport

if TYPE_CHECKING:
    from sluicegate.proxy.network.giving_way import ClientShare, GivingWay


def as_protocol(connection: Connection, giving_way: "GivingWay | ClientShare | None" = None) -> asyncio.BaseProtocol:
    """`giving_way`: the event loop's thread gives way to others after what is read, as native sockets do; of a client
    its share.
    """
    if giving_way is not None:
        return _GivesWay(connection, giving_way)
    return cast(asyncio.BaseProtocol, connection)  # it goes by the methods


class _GivesWay(asyncio.BufferedProtocol):
    __slots__ = ("_connection", "_giving_way")

    def __init__(self, connection: Connection, giving_way: "GivingWay | ClientShare") -> None:
        self._connection = connection
        self._giving_way = giving_way

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connection.connection_made(cast(Transport, transport))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._connection.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        self._connection.buffer_updated(nbytes)
        self._giving_way.has_taken(nbytes)

    def eof_received(self) -> bool:
        return self._connection.eof_received()

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)
