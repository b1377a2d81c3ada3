"""What the event loop's own transports take a connection for, where there are no native sockets."""

import asyncio
from typing import cast

from sluicegate.proxy.session.connection import Connection


def as_protocol(connection: Connection) -> asyncio.BaseProtocol:
    """It goes by the methods, which a connection has."""
    return cast(asyncio.BaseProtocol, connection)
