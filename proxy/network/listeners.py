"""The ports to which clients connect.

One port serves bootstrap. Each broker has its own port or, with TLS, its own host name on the bootstrap port (SNI). A
broker's port opens when the broker appears. Its number is the base port plus the node id, or is configured, so it is
the same after a restart. The proxy binds the port before it sends the response that names it, and starts accepting a
moment later.
"""

import asyncio
import errno
import re
import socket
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from sluicegate.config.listen import NODE_ID, Listen
from sluicegate.config.values.address import HostPort

BACKLOG = 1024
_MAX_NODE = 2**31 - 1
MAX_BROKERS = 1000


class CannotListen(Exception):
    """An address could not be bound.

    The message contains the address and the reason, and `advice` explains what an operator should do.
    """

    def __init__(self, address: HostPort, error: OSError) -> None:
        super().__init__(f"{address}: {error.strerror or error}")
        self.advice = _ADVICE.get(error.errno or 0, "listen on an address of this machine, or on 0.0.0.0")


_ADVICE = {
    errno.EADDRINUSE: "stop the process that listens there (ss -ltnp shows it), or choose another port",
    errno.EACCES: "choose a port from 1024 on, or give the process CAP_NET_BIND_SERVICE",
    errno.EADDRNOTAVAIL: "no interface of this machine has this address: choose another address, or 0.0.0.0",
}


class Acceptor(Protocol):
    """Accepts the connections of a listening socket."""

    def close(self) -> None:
        """Stop accepting."""


Accept = Callable[[int | None, socket.socket], Coroutine[Any, Any, Acceptor]]
"""Starts accepting on a listening socket. The first argument is the broker's node id, or None for bootstrap."""

Bind = Callable[[HostPort], socket.socket]
"""Creates a listening socket. Raises CannotListen."""


@dataclass(slots=True)
class _Listener:
    address: HostPort
    acceptor: asyncio.Task[Acceptor]


class Listeners:
    """The open ports by broker. `accept` is called for each port that is opened."""

    def __init__(self, listen: Listen, accept: Accept, bind: "Bind") -> None:
        self._listen = listen
        self._bind_socket = bind
        self._accept = accept
        self._open: dict[int | None, _Listener] = {}
        self._offered: set[int] = set()
        self._rejected: dict[int, str] = {}
        self._logged_advice: set[str] = set()
        self._unavailable: dict[int, str] = {}
        self._log = structlog.get_logger("sluicegate.listeners")
        self._broker_name = _name_pattern(listen.broker_host) if listen.broker_host is not None else None

    @property
    def bootstrap_address(self) -> HostPort:
        """The address on which bootstrap listens.

        If port 0 is configured, it contains the port that the system chose.
        """
        return self._open[None].address

    def node_named(self, host: str | None) -> int | None:
        """Return the node id of the broker whose host name a TLS client requested. Return None for any other name."""
        if host is None or self._broker_name is None:
            return None
        found = self._broker_name.fullmatch(host.lower().rstrip("."))
        node_id = int(found[1]) if found is not None else None
        return node_id if node_id is None or node_id <= _MAX_NODE else None

    def open_bootstrap(self) -> None:
        """Open the bootstrap port. Raises CannotListen."""
        self._bind(None, self._listen.bootstrap)
        self._log.info("listening", address=str(self.bootstrap_address), role="bootstrap")

    def offer(self, node_id: int) -> HostPort | None:
        """Open the port of broker `node_id` if it is not open.

        Return the broker's address for clients, or None if it has none. At most MAX_BROKERS brokers are offered, even
        if a response lists more.
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
                self._log_bind_failure(node_id, str(error))
                return None
            self._offered.add(node_id)
            self._rejected.pop(node_id, None)
            self._log.info("listening", address=str(self._open[node_id].address), role=f"broker {node_id}")
        return HostPort(self._listen.host_for_clients, self._open[node_id].address.port)

    def repeat_look_ups(self) -> None:
        """Forget which brokers cannot have an address. `offer` records them again if the cluster still lists them."""
        self._unavailable.clear()

    def _may_offer(self, node_id: int) -> bool:
        """Return whether a new broker can have an address. For each reason, log the first broker that cannot."""
        if node_id not in self._rejected and len(self._offered) + len(self._rejected) >= MAX_BROKERS:
            reason, advice = (f"a cluster of more than {MAX_BROKERS} brokers", "check upstream.bootstrap")
        elif node_id < 0:
            reason, advice = "a negative id", "check that upstream.bootstrap leads to a Kafka broker"
        else:
            unavailable = self._listen.why_no_client_address(node_id)
            if unavailable is None:
                return True
            reason, advice = unavailable
            if len(self._unavailable) < MAX_BROKERS:
                self._unavailable[node_id] = f"{reason}; {advice}"
        self._log_once_per_advice(node_id, reason, advice)
        return False

    def without_port(self, node_ids: Iterable[int]) -> dict[int, str]:
        """Return the brokers without an address for clients, each with the reason."""
        return {node_id: reason for node_id in node_ids if (reason := self._why_closed(node_id)) is not None}

    def _why_closed(self, node_id: int) -> str | None:
        reason = self._rejected.get(node_id)
        if reason is not None:
            return f"the broker's port cannot be bound: {reason} (listen.broker_port_base)"
        return self._unavailable.get(node_id)

    async def started(self) -> None:
        """Wait until every open port accepts connections."""
        await asyncio.gather(*(listener.acceptor for listener in self._open.values()))

    async def close(self) -> None:
        """Stop accepting on all ports."""
        for listener in self._open.values():
            (await listener.acceptor).close()

    def _bind(self, node_id: int | None, address: HostPort) -> None:
        listener = self._bind_socket(address)
        bound = HostPort(address.host, listener.getsockname()[1])
        acceptor = asyncio.get_running_loop().create_task(self._accept(node_id, listener))
        self._open[node_id] = _Listener(bound, acceptor)

    def _log_bind_failure(self, node_id: int, reason: str) -> None:
        if self._rejected.get(node_id) != reason:
            self._rejected[node_id] = reason
            self._log_unavailable(node_id, reason, "free that port or change listen.broker_port_base")

    def _log_once_per_advice(self, node_id: int, reason: str, advice: str) -> None:
        """Log one line for all brokers with the same advice.

        Node ids come from responses, so their number is unlimited.
        """
        if advice not in self._logged_advice:
            self._logged_advice.add(advice)
            self._log_unavailable(node_id, reason, advice)

    def _log_unavailable(self, node_id: int, reason: str, advice: str) -> None:
        self._log.error("broker unavailable to clients", broker=node_id, reason=reason, advice=advice)


def _name_pattern(broker_host: str) -> re.Pattern[str]:
    before, after = (re.escape(part.lower()) for part in broker_host.split(NODE_ID))
    return re.compile(rf"{before}(\d{{1,10}}){after}")


def bind(address: HostPort) -> socket.socket:
    """Return a listening socket that no other process can share. Raises CannotListen."""
    return _listening(address, (socket.SO_REUSEADDR,))


def bind_shared(address: HostPort) -> socket.socket:
    """Return a listening socket on an address that workers share.

    The system distributes connections among them. Raises CannotListen.
    """
    return _listening(address, (socket.SO_REUSEADDR, socket.SO_REUSEPORT))


def reserve_shared(address: HostPort) -> socket.socket:
    """Bind an address for workers that will share it, without listening. Raises CannotListen if it is in use."""
    bind(address).close()  # with only SO_REUSEPORT, binding would succeed next to another proxy of the same user
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
