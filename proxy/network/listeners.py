"""Where clients connect: one port for bootstrap, and for each broker a port of its own, opened while running as brokers
appear, or a name of its own on the bootstrap port (TLS clients say which name they want: SNI).

A broker's port is always base + node id, so that a restart keeps every port. Binding is done at once (an answer that
names a port must not leave before the port takes connections); accepting starts a moment later.
"""

import asyncio
import errno
import re
import socket
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from sluicegate.config.listen import NODE_ID, Listen
from sluicegate.config.values.address import HostPort

BACKLOG = 1024
MAX_BROKERS = 1000


class CannotListen(Exception):
    """An address could not be bound; the text says which and why, `advice` what to do."""

    def __init__(self, address: HostPort, error: OSError) -> None:
        super().__init__(f"{address}: {error.strerror or error}")
        self.advice = _ADVICE.get(error.errno or 0, "listen on an address of this machine, or on 0.0.0.0")


_ADVICE = {
    errno.EADDRINUSE: "end what listens there (ss -ltnp says what it is), or choose another port",
    errno.EACCES: "choose a port from 1024 on, or give the process CAP_NET_BIND_SERVICE",
    errno.EADDRNOTAVAIL: "no interface of this machine has the address: listen on one that has, or on 0.0.0.0",
}


class Acceptor(Protocol):
    """Takes connections from a listening socket."""

    def close(self) -> None:
        """Take no more."""


Accept = Callable[[int | None, socket.socket], Coroutine[Any, Any, Acceptor]]
"""Starts accepting on the listening socket of a broker (None: bootstrap)."""

Bind = Callable[[HostPort], socket.socket]
"""Makes a listening socket. Raises CannotListen."""


@dataclass(slots=True)
class _Listener:
    address: HostPort
    acceptor: asyncio.Task[Acceptor]


class Listeners:
    """`accept` is called for each port that is opened."""

    def __init__(self, listen: Listen, accept: Accept, bind: "Bind") -> None:
        self._listen = listen
        self._bind_socket = bind
        self._accept = accept
        self._open: dict[int | None, _Listener] = {}
        self._offered: set[int] = set()
        self._rejected: dict[int, str] = {}
        self._told_advice: set[str] = set()
        self._unavailable: str | None = None
        self.unnamed: str | None = None
        """Which broker can have no name, and what to do; None: none is known."""
        self._log = structlog.get_logger("sluicegate.listeners")
        self._broker_name = _name_pattern(listen.broker_host) if listen.broker_host is not None else None

    @property
    def bootstrap_address(self) -> HostPort:
        """Where bootstrap really listens."""
        return self._open[None].address

    def node_named(self, host: str | None) -> int | None:
        """The broker whose name a TLS client asked for; None for any other name."""
        if host is None or self._broker_name is None:
            return None
        found = self._broker_name.fullmatch(host.lower().rstrip("."))
        return int(found[1]) if found is not None else None

    def open_bootstrap(self) -> None:
        """Raises CannotListen."""
        self._bind(None, self._listen.bootstrap)
        self._log.info("listening", address=str(self.bootstrap_address), role="bootstrap")

    def offer(self, node_id: int) -> HostPort | None:
        """Open broker `node_id`'s port, or find it open; returns what clients are told, None when it cannot be.

        At most MAX_BROKERS are offered, whatever a broker says that there are.
        """
        if node_id not in self._offered and not self._may_offer(node_id):
            return None
        if self._listen.broker_host is not None:
            self._offered.add(node_id)
            host = self._listen.broker_host.replace(NODE_ID, str(node_id))
            return HostPort(host, self.bootstrap_address.port)
        if node_id not in self._open:
            try:
                self._bind(node_id, HostPort(self._listen.bootstrap.host, self._listen.port_of(node_id)))
            except CannotListen as error:
                self._complain_once(node_id, str(error))
                return None
            self._offered.add(node_id)
            self._rejected.pop(node_id, None)
            self._log.info("listening", address=str(self._open[node_id].address), role=f"broker {node_id}")
        return HostPort(self._listen.host_for_clients, self._open[node_id].address.port)

    def _may_offer(self, node_id: int) -> bool:
        """Whether a new broker can have an address; the first of each kind that cannot is told."""
        if node_id not in self._rejected and len(self._offered) + len(self._rejected) >= MAX_BROKERS:
            reason, advice = f"a cluster of more than {MAX_BROKERS} brokers", "look what it is that answers"
        elif node_id < 0:
            reason, advice = "a negative id", "look whether what answers is a Kafka broker"
        else:
            unavailable = self._listen.why_unavailable(node_id)
            if unavailable is None:
                return True
            reason, advice = unavailable
            self._unavailable = f"{reason}; {advice}"
            if self._listen.broker_host is not None:
                self.unnamed = self._unavailable
        self._complain_of_kind(node_id, reason, advice)
        return False

    @property
    def all_open(self) -> bool:
        """Whether no broker is without its address."""
        return self.not_open is None

    @property
    def not_open(self) -> str | None:
        """Which broker is without its address for clients, and why; None when none is."""
        if self._rejected:
            node_id, reason = next(iter(self._rejected.items()))
            others = f", and {len(self._rejected) - 1} more" if len(self._rejected) > 1 else ""
            return f"a broker's port cannot be bound: broker {node_id} at {reason}{others} (listen.broker_ports)"
        return self._unavailable

    async def started(self) -> None:
        """Wait until every listener opened so far takes connections."""
        await asyncio.gather(*(listener.acceptor for listener in self._open.values()))

    async def close(self) -> None:
        """Take no more connections."""
        for listener in self._open.values():
            (await listener.acceptor).close()

    def _bind(self, node_id: int | None, address: HostPort) -> None:
        listener = self._bind_socket(address)
        bound = HostPort(address.host, listener.getsockname()[1])
        acceptor = asyncio.get_running_loop().create_task(self._accept(node_id, listener))
        self._open[node_id] = _Listener(bound, acceptor)

    def _complain_once(self, node_id: int, reason: str) -> None:
        if self._rejected.get(node_id) != reason:
            self._rejected[node_id] = reason
            self._complain(node_id, reason, "free that port or change listen.broker_ports")

    def _complain_of_kind(self, node_id: int, reason: str, advice: str) -> None:
        """One line for all that are given the same advice: ids come from brokers' answers and may be without end."""
        if advice not in self._told_advice:
            self._told_advice.add(advice)
            self._complain(node_id, reason, advice)

    def _complain(self, node_id: int, reason: str, advice: str) -> None:
        self._log.error(
            "broker cannot be offered, clients will see it as unavailable", broker=node_id, reason=reason, advice=advice
        )


def _name_pattern(broker_host: str) -> re.Pattern[str]:
    before, after = (re.escape(part.lower()) for part in broker_host.split(NODE_ID))
    return re.compile(rf"{before}(\d{{1,9}}){after}")


def bind(address: HostPort) -> socket.socket:
    """A listening socket that is the only one at its address. Raises CannotListen."""
    return _listening(address, (socket.SO_REUSEADDR,))


def bind_shared(address: HostPort) -> socket.socket:
    """A listening socket at an address where other workers listen too: the system deals connections out among them.

    Raises CannotListen.
    """
    return _listening(address, (socket.SO_REUSEADDR, socket.SO_REUSEPORT))


def reserve_shared(address: HostPort) -> socket.socket:
    """Keep an address for workers that will share it: bound, not listening. Raises CannotListen where it is taken."""
    bind(address).close()  # sharing would be granted beside another proxy of the same user
    return _bound(address, (socket.SO_REUSEADDR, socket.SO_REUSEPORT))


def _listening(address: HostPort, options: Sequence[int]) -> socket.socket:
    listener = _bound(address, options)
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener


def _bound(address: HostPort, options: Sequence[int]) -> socket.socket:
    try:
        family, _, _, _, where = socket.getaddrinfo(
            address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise CannotListen(address, error) from error
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        for option in options:
            bound.setsockopt(socket.SOL_SOCKET, option, 1)
        bound.bind(where)
    except OSError as error:
        bound.close()
        raise CannotListen(address, error) from error
    return bound
