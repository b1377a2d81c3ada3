"""Connections from another address than the honest client's."""

import asyncio
import socket

FROM = "127.0.0.2"
_BIND_ADDRESS_NO_PORT = 24  # of Linux; Python has no name for it before 3.12


async def connected_from_elsewhere(address: tuple[str, int], receive_bytes: int | None = None) -> socket.socket:
    """The port is chosen when it connects: else the system looks through all those that earlier senders have used,
    for ten seconds once there are 28,000, and sends nothing. `receive_bytes`: how much the system takes for who does
    not read. Raises OSError.
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
