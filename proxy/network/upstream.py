"""Connecting to the cluster: try the addresses in turn, say which failed and why.

Addresses come from brokers' answers too, so they may be anything; what is wrong with one is told in words.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sluicegate.config.address import HostPort
from sluicegate.proxy.network.connecting import connected
from sluicegate.proxy.network.event_loop_protocol import as_protocol
from sluicegate.proxy.network.tls import TlsContext, words_of
from sluicegate.proxy.network.tls_handshake import with_broker
from sluicegate.proxy.network.tls_socket import TlsSocket, new_sealed_buffer
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.outlets import UpstreamUnreachable

if TYPE_CHECKING:
    from sluicegate.proxy.network.plain_socket import PlainSockets

_MAX_PORT = 65535
_MAX_HOST = 255
_MAX_WORDS = 300
_MAX_ADDRESS = 100


class ImpossibleAddress(Exception):
    """No connection can be made to an address, wherever it leads; the text says why."""


class HandshakeClosed(Exception):
    """A peer closed the connection in the middle of the TLS handshake."""

    def __init__(self) -> None:
        super().__init__("closed the TLS handshake: probably a plaintext port (upstream.tls is set)")


class Dialler:
    """Connects sessions to brokers, each in a task of the event loop."""

    def __init__(self, tls: TlsContext | None, timeout_seconds: float, sockets: "PlainSockets | None") -> None:
        """`sockets`: where there are native ones."""
        self._tls = tls
        self._timeout_seconds = timeout_seconds
        self._sockets = sockets
        self._sealed = new_sealed_buffer()

    def dial(
        self, addresses: Sequence[HostPort], connection: Connection, failed: Callable[[Exception], None]
    ) -> asyncio.Task[None]:
        """Connect `connection` to the first address that answers; `failed` is told what went wrong, whatever it is."""
        return asyncio.get_running_loop().create_task(self._dial(addresses, connection, failed))

    async def _dial(
        self, addresses: Sequence[HostPort], connection: Connection, failed: Callable[[Exception], None]
    ) -> None:
        try:
            await self.connect(addresses, connection)
        except Exception as error:
            failed(error)

    async def connect(self, addresses: Sequence[HostPort], connection: Connection) -> None:
        """Connect `connection` to the first address that answers. Raises UpstreamUnreachable, and nothing else."""
        reasons = []
        for address in addresses:
            try:
                check(address)
                async with asyncio.timeout(self._timeout_seconds):
                    await self._connect(address, connection)
                return
            except ConnectionResetError as error:
                why = str(HandshakeClosed()) if self._tls is not None else reason_of(error)
                reasons.append(f"{shown(address)}: {why}")
            except TimeoutError:
                reasons.append(f"{shown(address)}: no answer within {self._timeout_seconds} s")
            except Exception as error:  # whatever a name or a peer can bring about
                reasons.append(f"{shown(address)}: {reason_of(error)}")
        raise UpstreamUnreachable("; ".join(reasons) or "no address is known")

    async def _connect(self, address: HostPort, connection: Connection) -> None:
        plain = await connected(address.host, address.port)
        try:
            await self._attach(plain, await self._protocol(plain, address.host, connection))
        except BaseException:  # cancelled, too: nobody else has it
            plain.close()
            raise

    async def _protocol(self, plain: socket.socket, host: str, connection: Connection) -> asyncio.BaseProtocol:
        if self._tls is None:
            return as_protocol(connection)
        handshake = await with_broker(plain, self._tls.current(), host)
        return as_protocol(TlsSocket(handshake, connection, self._sealed))

    async def _attach(self, plain: socket.socket, protocol: asyncio.BaseProtocol) -> None:
        if self._sockets is not None:
            self._sockets.attach_broker(plain, protocol)
        else:
            await asyncio.get_running_loop().create_connection(lambda: protocol, sock=plain)


def why_lost(error: Exception | None) -> str | None:
    """Why a broker's connection was lost, where that has to be told: in TLS 1.3 a certificate is refused behind the
    handshake.
    """
    return words_of(error) if isinstance(error, ssl.SSLError) else None


def check(address: HostPort) -> None:
    """Raises ImpossibleAddress."""
    if not 0 < address.port <= _MAX_PORT:
        raise ImpossibleAddress(f"there is no port {address.port}")
    if not address.host:
        raise ImpossibleAddress("a host without a name")
    if not _is_host_name(address.host):
        raise ImpossibleAddress("no host can have this name")


def _is_host_name(host: str) -> bool:
    try:
        return len(host) <= _MAX_HOST and len(host.encode("idna")) > 0
    except UnicodeError:
        return False


def reason_of(error: Exception) -> str:
    """An error in its own words, without numbers and addresses around them; cut where it goes on and on."""
    if isinstance(error, ssl.SSLError):
        words = words_of(error)
    elif isinstance(error, OSError):
        words = error.strerror or str(error)
    elif isinstance(error, ImpossibleAddress | HandshakeClosed):
        words = str(error)
    else:
        words = f"{type(error).__name__}: {error}"
    return words[:_MAX_WORDS]


def shown(address: HostPort) -> str:
    """An address as a line of text can hold it, whatever a broker has called itself."""
    text = str(address)
    safe = text if text.isprintable() else ascii(text)[1:-1]
    return safe if len(safe) <= _MAX_ADDRESS else f"{safe[:_MAX_ADDRESS]}…"
