"""The proxy's client-facing side: listening sockets, TLS, limits on new connections, and routes to brokers."""

import socket
from functools import partial
from typing import TYPE_CHECKING

from sluicegate.config.model import Config
from sluicegate.proxy.network.accept_filter import AcceptFilter, ConnectionRate, accept_filter_of, connection_rate_of
from sluicegate.proxy.network.accepting import ClientAcceptor, accept_plain
from sluicegate.proxy.network.listeners import Acceptor, Bind, Listeners
from sluicegate.proxy.network.proxy_protocol import proxy_protocol_of
from sluicegate.proxy.network.tls.contexts import RequestedNames, TlsContext, context_for_clients
from sluicegate.proxy.network.tls.handshake import pending_handshakes_of
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.responses.broker_addresses import AddressBook
from sluicegate.proxy.server.assembly import ProxyParts
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.handlers.arrival import RotatingAddresses, Route
from sluicegate.proxy.session.handlers.session import Session

if TYPE_CHECKING:
    from sluicegate.proxy.network.plain_socket import PlainSockets


class Frontend:
    """One proxy's frontend.

    `listeners` contains its ports, `book` the brokers of these ports, and `tls` its certificate.
    """

    def __init__(self, config: Config, bind: Bind, counters: Counters) -> None:
        """`bind` creates the listening sockets."""
        self._config = config
        self._counters = counters
        self.listeners = Listeners(config.listen, self._accept, bind)
        self.book = AddressBook(config.upstream.brokers, self.listeners.offer)
        self.requested_names = RequestedNames()
        self.tls: TlsContext | None = None
        self._bootstrap = RotatingAddresses(config.upstream.bootstrap)
        self._handshakes = pending_handshakes_of(config.limits, counters.limits_reached, counters.closed_by_limit)
        self._accept_filter: AcceptFilter | None = None
        self._rate: ConnectionRate | None = None
        self._parts: ProxyParts | None = None
        self._sockets: PlainSockets | None = None

    def read_certificate(self) -> None:
        """Read the certificate that clients receive. Raises BadTlsFiles."""
        if self._config.listen.tls is not None:
            self.tls = context_for_clients(self._config.listen.tls, self.requested_names)

    def serve(self, parts: ProxyParts, sockets: "PlainSockets | None") -> None:
        """Start a session with `parts` for each accepted client. Call this before a port is opened."""
        log, counters = parts.log, self._counters
        self._parts = parts
        self._sockets = sockets
        self._accept_filter = accept_filter_of(self._config, log.connection_rejected, counters.connections_rejected)
        self._rate = connection_rate_of(self._config.limits, log.connection_delayed, counters.connections_delayed)

    async def _accept(self, listener: int | None, listening: socket.socket) -> Acceptor:
        """Accept connections on a broker's listener.

        `listener` is the broker's node id, or None for the bootstrap listener.
        """
        parts = self._parts
        assert parts is not None

        def new_client(proxy_header_peer: str | None = None) -> Connection:
            return Session(parts.dependencies, partial(self._route, listener), proxy_header_peer).client

        proxied = proxy_protocol_of(self._config.listen)
        accept_filter, rate = self._accept_filter, self._rate
        label = "bootstrap" if listener is None else f"broker {listener}"
        if self.tls is None and proxied is None and accept_filter is None and rate is None:
            return await accept_plain(listening, label, self._sockets, new_client, parts.log)
        return ClientAcceptor(
            listening,
            label,
            self.tls,
            proxied,
            accept_filter,
            new_client,
            parts.log,
            self._handshakes,
            rate,
            self._sockets,
        )

    def _route(self, listener: int | None, server_name: str | None) -> Route:
        node_id = listener if listener is not None else self.listeners.node_named(server_name)
        if node_id is None:
            return Route("bootstrap", lambda _: self._bootstrap.next_order())
        return Route(f"broker {node_id}", partial(self.book.addresses_for, node_id))
