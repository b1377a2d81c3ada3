"""A socket that is connected to an address, by an event loop that waits for it."""

import asyncio
import errno
import os
import socket
from functools import partial
from typing import Any

from sluicegate.proxy.network.first_to_arrive import NoneArrived, first_to_arrive

# Between two addresses of a name (RFC 8305, 5).
_NEXT_SECONDS = 0.25


async def connected(host: str, port: int) -> socket.socket:
    """One to the first of the host's addresses that takes it; it does not block. Raises OSError, the first one's."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    try:
        return await first_to_arrive(
            [partial(_connected, loop, each) for each in found], _NEXT_SECONDS, socket.socket.close
        )
    except NoneArrived as none:
        refused = next(iter(none.errors), None) or OSError(errno.EADDRNOTAVAIL, "the name has no address")
        raise refused from None


async def _connected(loop: asyncio.AbstractEventLoop, found: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol, _, address = found
    connecting = socket.socket(family, kind, protocol)
    try:
        connecting.setblocking(False)
        failed = connecting.connect_ex(address)
        if failed == errno.EINPROGRESS:
            await _until_writable(loop, connecting)
            failed = connecting.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            raise OSError(failed, os.strerror(failed))
    except BaseException:  # cancelled, too: nobody else has it
        connecting.close()
        raise
    return connecting


async def _until_writable(loop: asyncio.AbstractEventLoop, connecting: socket.socket) -> None:
    writable = asyncio.Event()
    loop.add_writer(connecting, writable.set)
    try:
        await writable.wait()
    finally:
        loop.remove_writer(connecting)
