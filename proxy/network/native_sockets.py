"""Sockets without TLS are read and written natively where that was compiled. Where it was not, the event loop's own
transports do it; nothing else is different.
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
    with suppress(ImportError):  # of what is native this alone could not be compiled
        from sluicegate.proxy.network import plain_socket

        HAS_NATIVE_SOCKETS = True


def native_sockets(loop: asyncio.AbstractEventLoop) -> "PlainSockets | None":
    """Those of one event loop; None: its own transports are used."""
    return plain_socket.PlainSockets(loop) if HAS_NATIVE_SOCKETS else None


def as_protocol(connection: Connection | TlsSocket) -> asyncio.BaseProtocol:
    """It goes by the methods, which both have; a compiled type cannot be a subclass of asyncio's."""
    return cast(asyncio.BaseProtocol, connection)
