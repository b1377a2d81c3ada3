"""Accepts clients by hand: first what a load balancer says of them, then whether they may come in, then the TLS
handshake, then the connection is its session's.

Not by the event loop's own servers, because those tell nobody why a handshake failed, and know no PROXY protocol.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sluicegate.proxy.network.accept_filter import ConnectionRate, Entrance
from sluicegate.proxy.network.native_sockets import as_protocol
from sluicegate.proxy.network.proxy_protocol import (
    FIXED_BYTES,
    BadProxyHeader,
    ProxyProtocol,
    bytes_behind,
    client_in,
    may_begin,
)
from sluicegate.proxy.network.spare_descriptor import SpareDescriptor
from sluicegate.proxy.network.tls.contexts import TlsContext, words_of
from sluicegate.proxy.network.tls.handshake import Handshakes, with_client
from sluicegate.proxy.network.tls.socket import TlsSocket, new_sealed_buffer
from sluicegate.proxy.reporting.logs.session_log import SessionLog
from sluicegate.proxy.session.connection import Connection

if TYPE_CHECKING:
    from sluicegate.proxy.network.plain_socket import PlainSockets

# How often a header that comes in pieces is looked at again.
_PIECE_SECONDS = 0.01

NewConnection = Callable[[str | None], Connection]
"""Makes what an accepted one becomes; told the client's address (host:port) where another is speaking for it."""


class ClientAcceptor:
    """Takes connections from a listening socket until `close`."""

    def __init__(
        self,
        listener: socket.socket,
        label: str,
        tls: TlsContext | None,
        proxied: ProxyProtocol | None,
        entrance: Entrance | None,
        new_connection: NewConnection,
        log: SessionLog,
        handshakes: Handshakes,
        rate: ConnectionRate | None,
        sockets: "PlainSockets | None",
    ) -> None:
        """`entrance`, `handshakes` and `rate` are those of all listeners together. No entrance: everybody may come in;
        no rate: as fast as they like. `sockets`: where there are native ones.
        """
        self._listener = listener
        self._label = label
        self._tls = tls
        self._proxied = proxied
        self._entrance = entrance
        self._new_connection = new_connection
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._handshakes = handshakes
        self._rate = rate
        self._sockets = sockets
        self._sealed = new_sealed_buffer()
        self._own: set[asyncio.Task[None]] = set()
        self._spare = SpareDescriptor()
        self._accepting = self._loop.create_task(self._accept())

    def close(self) -> None:
        """Take no more connections; handshakes under way are given up."""
        self._accepting.cancel()
        for handshake in self._own:
            handshake.cancel("the proxy stops")
        self._listener.close()
        self._spare.close()

    async def _accept(self) -> None:
        while True:
            try:
                await self._handshakes.until_there_is_room()
                connection, peer = await self._loop.sock_accept(self._listener)
                if self._rate is not None:
                    await self._wait_with(connection, peer, self._rate)
            except Exception as error:  # whatever it is, the next one may come through
                await self._cannot_accept(error)
                continue
            handshake = self._loop.create_task(self._take(connection, peer))
            self._own.add(handshake)
            handshake.add_done_callback(self._own.discard)
            self._handshakes.add(handshake)

    @staticmethod
    async def _wait_with(connection: socket.socket, peer: Any, rate: ConnectionRate) -> None:
        try:
            await rate.let_one_come(_shown(peer))
        except BaseException:  # nobody else has it yet
            connection.close()
            raise

    async def _cannot_accept(self, error: Exception) -> None:
        seconds = self._spare.make_room(self._listener, error)
        self._log.cannot_accept(self._label, error.strerror or str(error) if isinstance(error, OSError) else str(error))
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
        if self._entrance is not None and not self._entrance.lets_in(client or _shown(peer)):
            connection.close()
            return
        await self._let_in(connection, peer, client)

    # -- who it is, where a load balancer says so ------------------------------------------------------------------

    async def _client_of(self, connection: socket.socket, peer: str, proxied: ProxyProtocol) -> str | None:
        if not proxied.trusts(peer):
            if proxied.is_required:
                raise BadProxyHeader("not an address of listen.proxy_protocol_from, which all connections come from")
            return None
        if not proxied.is_required and not may_begin(await self._first_bytes(connection)):
            return None
        fixed = await self._exactly(connection, FIXED_BYTES)
        return client_in(fixed, await self._exactly(connection, bytes_behind(fixed)))

    async def _first_bytes(self, connection: socket.socket) -> bytes:
        """What came first, left where it is: enough to tell a header from anything else."""
        while True:
            seen = await self._peeked(connection)
            if not seen:
                raise EOFError
            if len(seen) >= FIXED_BYTES or not may_begin(seen):
                return seen
            await asyncio.sleep(_PIECE_SECONDS)

    async def _peeked(self, connection: socket.socket) -> bytes:
        readable = asyncio.Event()
        self._loop.add_reader(connection, readable.set)
        try:
            await readable.wait()
        finally:
            self._loop.remove_reader(connection)
        return connection.recv(FIXED_BYTES, socket.MSG_PEEK)

    async def _exactly(self, connection: socket.socket, count: int) -> bytes:
        taken = b""
        while len(taken) < count:
            piece = await self._loop.sock_recv(connection, count - len(taken))
            if not piece:
                raise EOFError
            taken += piece
        return taken

    def _header_failed(self, peer: Any, error: BaseException) -> None:
        """A connection that is closed before it has said anything is a load balancer's look at whether we are here."""
        if isinstance(error, EOFError | OSError) and not isinstance(error, TimeoutError):
            return
        reason = str(error) or "given up"
        if isinstance(error, TimeoutError):
            reason = self._handshakes.took_too_long("no PROXY protocol header came")
        self._log.no_proxy_header(_shown(peer), self._label, reason)

    # -- into its session ------------------------------------------------------------------------------------------

    async def _let_in(self, connection: socket.socket, peer: Any, client: str | None) -> None:
        try:
            if self._tls is None:
                await self._attach(connection, as_protocol(self._new_connection(client)))
                return
            async with asyncio.timeout(self._handshakes.seconds):
                handshake = await with_client(connection, self._tls.current())
            behind_tls = TlsSocket(handshake, self._new_connection(client), self._sealed)
            await self._attach(connection, as_protocol(behind_tls))
        except TimeoutError:
            connection.close()
            reason = self._handshakes.took_too_long("it was not done")
            self._log.handshake_failed(client or _shown(peer), self._label, reason)
        except asyncio.CancelledError as error:
            connection.close()
            self._log.handshake_failed(client or _shown(peer), self._label, str(error) or "given up")
        except Exception as error:  # whatever a client or a certificate can bring about
            connection.close()
            self._log.handshake_failed(client or _shown(peer), self._label, words_of(error))

    async def _attach(self, connection: socket.socket, protocol: asyncio.BaseProtocol) -> None:
        if self._sockets is not None:
            self._sockets.attach(connection, protocol)
        else:
            await self._loop.connect_accepted_socket(lambda: protocol, connection)


def _shown(peer: Any) -> str:
    return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) and len(peer) > 1 else "unknown"
