"""Listening sockets that the parent process has opened, as systemd does (sd_listen_fds(3)).

These sockets outlive the proxy's process. So clients that connect during a restart wait in the backlog instead of being
rejected.
"""

import os
import socket
from collections.abc import MutableMapping

from sluicegate.config.values.address import HostPort
from sluicegate.proxy.network.listeners import Bind, CannotListen

_FIRST_DESCRIPTOR = 3
_PID, _COUNT = "LISTEN_PID", "LISTEN_FDS"
_NAMES = "LISTEN_FDNAMES"


class BadSocket(Exception):
    """An inherited descriptor is not a listening TCP socket. The message explains what an operator should do."""


class InheritedSockets:
    """The inherited sockets of one process. Several processes may share them."""

    def __init__(self, sockets: tuple[socket.socket, ...] = ()) -> None:
        self.sockets = sockets

    @property
    def addresses(self) -> list[str]:
        """The addresses on which the sockets listen."""
        return [str(HostPort(*each.getsockname()[:2])) for each in self.sockets]

    def at(self, address: HostPort) -> socket.socket | None:
        """Return a duplicate of the socket that listens on `address`, or None.

        Raises CannotListen if the host name in `address` cannot be resolved.
        """
        if not self.sockets:
            return None
        try:
            found = socket.getaddrinfo(
                address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
        except OSError as error:
            raise CannotListen(address, error) from error
        where = {entry[4][:2] for entry in found}
        for each in self.sockets:
            if each.getsockname()[:2] in where:
                duplicate = each.dup()
                duplicate.setblocking(False)
                return duplicate
        return None

    def inherited_or_bind(self, bind: Bind) -> Bind:
        """Return a function that takes the inherited socket of an address if there is one, and otherwise binds it."""
        return lambda address: self.at(address) or bind(address)


NOTHING_INHERITED = InheritedSockets()


def inherited_sockets(environment: MutableMapping[str, str], pid: int) -> InheritedSockets:
    """Return the sockets that were passed to this process, whose id is `pid`.

    Removes the variables from the environment, so that child processes do not use the sockets. Raises BadSocket.
    """
    for_pid, count = environment.pop(_PID, ""), environment.pop(_COUNT, "")
    environment.pop(_NAMES, None)
    if for_pid != str(pid) or not count.isdecimal():
        return NOTHING_INHERITED
    descriptors = range(_FIRST_DESCRIPTOR, _FIRST_DESCRIPTOR + int(count))
    return InheritedSockets(tuple(_socket_of(descriptor) for descriptor in descriptors))


def _socket_of(descriptor: int) -> socket.socket:
    advice = "use only ListenStream= lines with host and port in sluicegate.socket"
    try:
        os.set_inheritable(descriptor, False)
        found = socket.socket(fileno=descriptor)
        listens = found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    except OSError as error:
        reason = f"inherited descriptor {descriptor} is not a socket ({error.strerror})"
        raise BadSocket(f"{reason}: {advice}") from error
    if found.family not in (socket.AF_INET, socket.AF_INET6) or found.type != socket.SOCK_STREAM or not listens:
        found.detach()
        raise BadSocket(f"inherited descriptor {descriptor} does not listen for TCP: {advice}")
    return found
