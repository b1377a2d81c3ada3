"""What sockets and event loops take a connection for, or TLS before one."""

import asyncio
from typing import cast

from sluicegate.proxy.network.tls.socket import TlsSocket
from sluicegate.proxy.session.connection import Connection


def as_protocol(connection: Connection | TlsSocket) -> asyncio.BaseProtocol:
    """It goes by the methods, which both have; a compiled type cannot be a subclass of asyncio's."""
    return cast(asyncio.BaseProtocol, connection)
