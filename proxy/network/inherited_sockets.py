"""Listening sockets that were there before this process: opened by who starts it, as systemd does (sd_listen_fds(3)).

They outlive the process. Who connects while it is started again waits in them, and is not rejected.
"""

import os
import socket
from collections.abc import MutableMapping

from sluicegate.config.values.address import HostPort
from sluicegate.proxy.network.listeners import Bind, CannotListen

_FIRST_DESCRIPTOR = 3
_FOR_WHOM, _HOW_MANY = "LISTEN_PID", "LISTEN_FDS"
_NAMES = "LISTEN_FDNAMES"


class BadSocket(Exception):
    """What was handed over is no listening TCP socket; the text says what to do."""


class InheritedSockets:
    """Those of one process; more processes may have the same."""

    def __init__(self, sockets: tuple[socket.socket, ...] = ()) -> None:
        self.sockets = sockets

    @property
    def addresses(self) -> list[str]:
        """Where they listen."""
        return [str(HostPort(*each.getsockname()[:2])) for each in self.sockets]

    def at(self, address: HostPort) -> socket.socket | None:
        """The one that listens at an address; None: none does. Raises CannotListen for a name that leads nowhere."""
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
                mine = each.dup()
                mine.setblocking(False)
                return mine
        return None

    def before(self, bind: Bind) -> Bind:
        """What takes one of these where there is one, and else binds."""
        return lambda address: self.at(address) or bind(address)


NOTHING_INHERITED = InheritedSockets()


def inherited_sockets(environment: MutableMapping[str, str], pid: int) -> InheritedSockets:
    """What was handed to the process `pid`, which is this one. Takes the words for it out of the environment, so that
    no process that is started from here believes they are its own. Raises BadSocket.
    """
    for_whom, how_many = environment.pop(_FOR_WHOM, ""), environment.pop(_HOW_MANY, "")
    environment.pop(_NAMES, None)
    if for_whom != str(pid) or not how_many.isdecimal():
        return NOTHING_INHERITED
    descriptors = range(_FIRST_DESCRIPTOR, _FIRST_DESCRIPTOR + int(how_many))
    return InheritedSockets(tuple(_socket_of(descriptor) for descriptor in descriptors))


def _socket_of(descriptor: int) -> socket.socket:
    advice = "give sluicegate.socket lines of ListenStream= with host and port, and nothing else"
    try:
        os.set_inheritable(descriptor, False)
        found = socket.socket(fileno=descriptor)
        listens = found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
    except OSError as error:
        told = f"descriptor {descriptor} was handed over and is no socket ({error.strerror}): {advice}"
        raise BadSocket(told) from error
    if found.family not in (socket.AF_INET, socket.AF_INET6) or found.type != socket.SOCK_STREAM or not listens:
        found.detach()
        raise BadSocket(f"descriptor {descriptor} was handed over and does not listen for TCP: {advice}")
    return found
