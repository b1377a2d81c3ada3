"""Listening sockets that are bound before the proxy starts, so that no other process can take their ports."""

import socket

from sluicegate.config.values.address import HostPort
from sluicegate.proxy.network.listeners import bind


class ReservedPorts:
    """Sockets on one host, on ports that the system has chosen."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._bound: dict[int, socket.socket] = {}

    def reserve(self) -> HostPort:
        """Bind a free port and return its address. Raises CannotListen."""
        listening = bind(HostPort(self._host, 0))
        port: int = listening.getsockname()[1]
        self._bound[port] = listening
        return HostPort(self._host, port)

    def bind(self, address: HostPort) -> socket.socket:
        """Return the socket for a reserved port, or a new socket for any other address. Raises CannotListen."""
        listening = self._bound.pop(address.port, None)
        return bind(address) if listening is None else listening

    def close(self) -> None:
        """Close the sockets that were reserved but not used."""
        for listening in self._bound.values():
            listening.close()
        self._bound.clear()
