"""Attach connections to sockets: natively if `plain_socket` was compiled, otherwise by the event loop's own transports.

Behaviour is the same either way.
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
    with suppress(ImportError):  # this module needs epoll; the other compiled modules do not
        from sluicegate.proxy.network import plain_socket

        HAS_NATIVE_SOCKETS = True


def native_sockets(loop: asyncio.AbstractEventLoop) -> "PlainSockets | None":
    """Return the native sockets of one event loop, or None to use its own transports."""
    return plain_socket.PlainSockets(loop) if HAS_NATIVE_SOCKETS else None


def as_protocol(connection: Connection | TlsSocket) -> asyncio.BaseProtocol:
    """Return `connection` typed as an asyncio protocol: it has the methods, but a compiled class cannot inherit."""
    return cast(asyncio.BaseProtocol, connection)
