"""Attaches connections to sockets.

If `plain_socket` was compiled, its native sockets are used, otherwise the event loop's own transports. Both behave the
same.
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from sluicegate.protocol.records.scan import is_compiled
from sluicegate.proxy.network.tls.socket import TlsSocket
from sluicegate.proxy.session.connection import Connection

if TYPE_CHECKING:
    from sluicegate.proxy.network.plain_socket import PlainSockets


HAS_NATIVE_SOCKETS = False
if is_compiled():
    with suppress(ImportError):  # unlike other compiled modules, this one needs epoll
        from sluicegate.proxy.network import plain_socket

        HAS_NATIVE_SOCKETS = True


def native_sockets(loop: asyncio.AbstractEventLoop) -> "PlainSockets | None":
    """Return one event loop's native sockets, or None if its own transports must be used."""
    return plain_socket.PlainSockets(loop) if HAS_NATIVE_SOCKETS else None


def as_protocol(connection: Connection | TlsSocket) -> asyncio.BaseProtocol:
    """Return `connection`, typed as an asyncio protocol. A compiled class has the methods, but cannot inherit."""
    return cast(asyncio.BaseProtocol, connection)
