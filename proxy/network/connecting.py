"""Connects a socket to the first address of a host that takes the connection (RFC 8305, by `aiohappyeyeballs`)."""

import asyncio
import errno
import os
import socket

from aiohappyeyeballs import start_connection

# RFC 8305, section 5: the recommended delay between two attempts.
_NEXT_SECONDS = 0.25


async def connected(host: str, port: int) -> socket.socket:
    """Return a connected socket that does not block. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    if not found:
        raise OSError(errno.EADDRNOTAVAIL, "the name has no address")
    try:
        return await start_connection(found, happy_eyeballs_delay=_NEXT_SECONDS, loop=loop)
    except OSError as error:
        if error.errno is None:  # the addresses failed for different reasons, which the text lists
            raise
        raise OSError(error.errno, os.strerror(error.errno)) from None
    except RuntimeError as error:  # uvloop's
        raise OSError(str(error)) from error
