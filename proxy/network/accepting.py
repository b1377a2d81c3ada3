"""Accepts clients. Without TLS, PROXY protocol and limits on new connections, a session starts at once.

Otherwise the PROXY protocol header, the accept filter and the TLS handshake may each reject the client. asyncio's own
servers cannot be used: they do not report why a handshake failed, and do not support the PROXY protocol.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sluicegate.proxy.network.accept_filter import AcceptFilter, ConnectionRate
from sluicegate.proxy.network.listeners import BACKLOG, Acceptor
from sluicegate.proxy.network.native_sockets import as_protocol
from sluicegate.proxy.network.proxy_protocol import (
    FIXED_BYTES,
    BadProxyHeader,
    ProxyProtocol,
    client_address_in,
    may_be_header,
    remaining_bytes,
)
from sluicegate.proxy.network.spare_descriptor import SpareDescriptor
from sluicegate.proxy.network.tls.contexts import TlsContext, tls_failure_message
from sluicegate.proxy.network.tls.handshake import ClosedWithoutData, PendingHandshakes, handshake_with_client
from sluicegate.proxy.network.tls.socket import TlsSocket, new_encrypted_buffer
from sluicegate.proxy.reporting.logs.session_log import SessionLog
from sluicegate.proxy.session.connection import Connection

if TYPE_CHECKING:
    from sluicegate.proxy.network.plain_socket import PlainSockets


# The maximum number of connections accepted before the event loop handles other events.
_MOST_AT_ONCE = 16


async def accept_plain(
    listener: socket.socket,
    label: str,
    sockets: "PlainSockets | None",
    new_connection: Callable[[], Connection],
    log: SessionLog,
) -> Acceptor:
    """Accept the connections of a listening socket.

    Native sockets accept them if available, otherwise the event loop does.
    """
    if sockets is not None:
        return PlainAcceptor(listener, label, sockets, new_connection, log)
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: as_protocol(new_connection()), sock=listener, backlog=BACKLOG)


class PlainAcceptor:
    """Accepts the connections of a listening socket until `close`."""

    def __init__(
        self,
        listener: socket.socket,
        label: str,
        sockets: "PlainSockets",
        new_connection: Callable[[], Connection],
        log: SessionLog,
    ) -> None:
        self._listener = listener
        self._label = label
        self._sockets = sockets
        self._new_connection = new_connection
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._spare = SpareDescriptor()
        self._resume_timer: asyncio.TimerHandle | None = None
        self._listen()

    def close(self) -> None:
        """Stop accepting."""
        if self._resume_timer is not None:
            self._resume_timer.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()
        self._spare.close()

    def _listen(self) -> None:
        self._resume_timer = None
        self._loop.add_reader(self._listener, self._accept_some)

    def _accept_some(self) -> None:
        for _ in range(_MOST_AT_ONCE):
            try:
                accepted, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:  # whatever the reason, the next connection may succeed
                self._cannot_accept(error)
                return
            accepted.setblocking(False)
            self._sockets.attach(accepted, as_protocol(self._new_connection()))

    def _cannot_accept(self, error: OSError) -> None:
        seconds = self._spare.handle_accept_error(self._listener, error)
        self._log.accept_failed(self._label, error.strerror or str(error))
        self._loop.remove_reader(self._listener)
        self._resume_timer = self._loop.call_later(seconds, self._listen)


# The interval after which an incomplete header is read again.
_POLL_SECONDS = 0.01

NewConnection = Callable[[str | None], Connection]
"""Creates the session's connection.

The argument is the client's address (host:port) if a load balancer has sent it, or None.
"""


class ClientAcceptor:
    """Accepts the connections of a listening socket until `close`."""

    def __init__(
        self,
        listener: socket.socket,
        label: str,
        tls: TlsContext | None,
        proxied: ProxyProtocol | None,
        accept_filter: AcceptFilter | None,
        new_connection: NewConnection,
        log: SessionLog,
        handshakes: PendingHandshakes,
        rate: ConnectionRate | None,
        sockets: "PlainSockets | None",
    ) -> None:
        """All listeners share `accept_filter`, `handshakes` and `rate`.

        If `accept_filter` is None, any client may connect. If `rate` is None, the rate is unlimited. `sockets` contains
        the native sockets; it is None without them.
        """
        self._listener = listener
        self._label = label
        self._tls = tls
        self._proxied = proxied
        self._accept_filter = accept_filter
        self._new_connection = new_connection
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._handshakes = handshakes
        self._rate = rate
        self._sockets = sockets
        self._encrypted = new_encrypted_buffer()
        self._own: set[asyncio.Task[None]] = set()
        self._spare = SpareDescriptor()
        self._accepting = self._loop.create_task(self._accept())

    def close(self) -> None:
        """Stop accepting and cancel handshakes in progress."""
        self._accepting.cancel()
        for handshake in self._own:
            handshake.cancel("the proxy stops")
        self._listener.close()
        self._spare.close()

    async def _accept(self) -> None:
        while True:
            try:
                await self._handshakes.wait_for_room()
                connection, peer = await self._loop.sock_accept(self._listener)
                if self._rate is not None:
                    await self._wait_for_rate(connection, peer, self._rate)
            except Exception as error:  # whatever the reason, the next connection may succeed
                await self._cannot_accept(error)
                continue
            handshake = self._loop.create_task(self._take(connection, peer))
            self._own.add(handshake)
            handshake.add_done_callback(self._own.discard)
            self._handshakes.add(handshake)

    @staticmethod
    async def _wait_for_rate(connection: socket.socket, peer: Any, rate: ConnectionRate) -> None:
        try:
            await rate.wait_for_slot(_shown(peer))
        except BaseException:  # no other code closes the socket yet
            connection.close()
            raise

    async def _cannot_accept(self, error: Exception) -> None:
        seconds = self._spare.handle_accept_error(self._listener, error)
        self._log.accept_failed(self._label, error.strerror or str(error) if isinstance(error, OSError) else str(error))
        await asyncio.sleep(seconds)

    async def _take(self, connection: socket.socket, peer: Any) -> None:
        client: str | None = None
        if self._proxied is not None:
            try:
                async with asyncio.timeout(self._handshakes.seconds):
                    client = await self._client_of(connection, str(peer[0]), self._proxied)
            except (BadProxyHeader, TimeoutError, asyncio.CancelledError, OSError, EOFError) as error:
                connection.close()
                self._header_failed(peer, error)
                return
        if self._accept_filter is not None and not self._accept_filter.allows(client or _shown(peer)):
            connection.close()
            return
        await self._begin_session(connection, peer, client)

    # -- PROXY protocol --------------------------------------------------------------------------------------------

    async def _client_of(self, connection: socket.socket, peer: str, proxied: ProxyProtocol) -> str | None:
        if not proxied.trusts(peer):
            if proxied.is_required:
                raise BadProxyHeader("not an address of listen.proxy_protocol_from, and proxy_protocol is required")
            return None
        if not proxied.is_required and not may_be_header(await self._first_bytes(connection)):
            return None
        fixed = await self._exactly(connection, FIXED_BYTES)
        return client_address_in(fixed, await self._exactly(connection, remaining_bytes(fixed)))

    async def _first_bytes(self, connection: socket.socket) -> bytes:
        """Peek at the first bytes, enough to recognize a header."""
        while True:
            first = await self._peeked(connection)
            if not first:
                raise EOFError
            if len(first) >= FIXED_BYTES or not may_be_header(first):
                return first
            await asyncio.sleep(_POLL_SECONDS)

    async def _peeked(self, connection: socket.socket) -> bytes:
        readable = asyncio.Event()
        self._loop.add_reader(connection, readable.set)
        try:
            await readable.wait()
        finally:
            self._loop.remove_reader(connection)
        return connection.recv(FIXED_BYTES, socket.MSG_PEEK)

    async def _exactly(self, connection: socket.socket, count: int) -> bytes:
        received = b""
        while len(received) < count:
            chunk = await self._loop.sock_recv(connection, count - len(received))
            if not chunk:
                raise EOFError
            received += chunk
        return received

    def _header_failed(self, peer: Any, error: BaseException) -> None:
        """Log a bad header. A connection that closed before it sent a header was a load balancer's health check, and is
        not logged.
        """
        if isinstance(error, EOFError | OSError) and not isinstance(error, TimeoutError):
            return
        reason = str(error) or "cancelled"
        if isinstance(error, TimeoutError):
            reason = self._handshakes.timeout_message("no PROXY protocol header")
        self._log.no_proxy_header(_shown(peer), self._label, reason)

    # -- TLS and session -------------------------------------------------------------------------------------------

    async def _begin_session(self, connection: socket.socket, peer: Any, client: str | None) -> None:
        try:
            if self._tls is None:
                await self._attach(connection, as_protocol(self._new_connection(client)))
                return
            async with asyncio.timeout(self._handshakes.seconds):
                handshake = await handshake_with_client(connection, self._tls.current())
            with_tls = TlsSocket(handshake, self._new_connection(client), self._encrypted)
            await self._attach(connection, as_protocol(with_tls))
        except TimeoutError:
            connection.close()
            reason = self._handshakes.timeout_message("not complete")
            self._log.handshake_failed(client or _shown(peer), self._label, reason)
        except asyncio.CancelledError as error:
            connection.close()
            self._log.handshake_failed(client or _shown(peer), self._label, str(error) or "cancelled")
        except ClosedWithoutData:  # a load balancer's health check
            connection.close()
        except Exception as error:  # a client or a certificate can cause any error
            connection.close()
            self._log.handshake_failed(client or _shown(peer), self._label, tls_failure_message(error))

    async def _attach(self, connection: socket.socket, protocol: asyncio.BaseProtocol) -> None:
        if self._sockets is not None:
            self._sockets.attach(connection, protocol)
        else:
            await self._loop.connect_accepted_socket(lambda: protocol, connection)


def _shown(peer: Any) -> str:
    return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) and len(peer) > 1 else "unknown"
