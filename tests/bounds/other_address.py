"""Opens connections from a different address than the honest client's."""

import asyncio
import socket

FROM = "127.0.0.2"
_BIND_ADDRESS_NO_PORT = 24  # Linux; the socket module has no name for it before Python 3.12


async def connect_from_other_address(address: tuple[str, int], receive_bytes: int | None = None) -> socket.socket:
    """Connect from `FROM`. `receive_bytes` sets the socket's receive buffer. Raises OSError.

    The kernel chooses the port when it connects. If it chose at bind, it would search all ports that earlier senders
    have used, for ten seconds after 28,000 connections.
    """
    raw = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        raw.setblocking(False)
        if receive_bytes is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        raw.setsockopt(socket.IPPROTO_IP, _BIND_ADDRESS_NO_PORT, 1)
        raw.bind((FROM, 0))
        await asyncio.get_running_loop().sock_connect(raw, address)
    except BaseException:
        raw.close()
        raise
    return raw
