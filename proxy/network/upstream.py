"""Connecting to the cluster: the first address that answers is taken; if none does, each is told of with its reason.

An address that says nothing is waited for, but not alone: the next is tried beside it. Addresses come from brokers'
answers too, so they may be anything; what is wrong with one is told in words.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sluicegate.config.values.address import HostPort
from sluicegate.proxy.network.happy_eyeballs import AllFailed, happy_eyeballs
from sluicegate.proxy.network.native_sockets import as_protocol
from sluicegate.proxy.network.tls.contexts import TlsContext, words_of
from sluicegate.proxy.network.tls.handshake import Handshake, with_broker
from sluicegate.proxy.network.tls.socket import TlsSocket, new_sealed_buffer
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.outlets import UpstreamUnreachable

if TYPE_CHECKING:
    from sluicegate.proxy.network.plain_socket import PlainSockets
import errno
import os

from aiohappyeyeballs import start_connection

# RFC 8305, section 5: the recommended delay between two attempts.
_NEXT_SECONDS = 0.25


async def connected(host: str, port: int) -> socket.socket:
    """Return a connected socket that does not block. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    if not found:
        raise OSError(errno.EADDRNOTAVAIL, "the name has no address")
    try:
        return await start_connection(found, happy_eyeballs_delay=_NEXT_SECONDS, loop=loop)
    except OSError as error:
        if error.errno is None:  # the addresses failed for different reasons, which the text lists
            raise
        raise OSError(error.errno, os.strerror(error.errno)) from None
    except RuntimeError as error:  # uvloop's
        raise OSError(str(error)) from error


NEXT_BROKER_SECONDS = 0.5
"""Between two brokers, to reach either of which is enough: longer than what most take, TLS from far away included, and
shorter than what a first batch waits for its topic's settings.
"""
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


@dataclass(frozen=True, slots=True)
class _Reached:
    """A broker that nobody speaks to yet; without TLS there is no handshake."""

    plain: socket.socket
    handshake: Handshake | None

    def close(self) -> None:
        self.plain.close()


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
        attempts = [partial(self._reach, address) for address in addresses]
        try:
            reached = await happy_eyeballs(attempts, NEXT_BROKER_SECONDS, _Reached.close)
        except AllFailed as none:
            reasons = map(self._reason, addresses, none.errors)
            raise UpstreamUnreachable("; ".join(reasons) or "no address is known") from None
        try:
            await self._attach(reached, connection)
        except BaseException as error:  # cancelled, too: nobody else has it
            reached.close()
            if isinstance(error, Exception):
                raise UpstreamUnreachable(reason_of(error)) from error
            raise

    async def _reach(self, address: HostPort) -> _Reached:
        check(address)
        async with asyncio.timeout(self._timeout_seconds):
            plain = await connected(address.host, address.port)
            try:
                return _Reached(plain, await self._shaken(plain, address.host))
            except BaseException:  # cancelled, too
                plain.close()
                raise

    async def _shaken(self, plain: socket.socket, host: str) -> Handshake | None:
        return None if self._tls is None else await with_broker(plain, self._tls.current(), host)

    def _reason(self, address: HostPort, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            why = f"no answer within {self._timeout_seconds} s"
        elif isinstance(error, ConnectionResetError) and self._tls is not None:
            why = str(HandshakeClosed())
        else:
            why = reason_of(error)
        return f"{shown(address)}: {why}"

    async def _attach(self, reached: _Reached, connection: Connection) -> None:
        behind = connection if reached.handshake is None else TlsSocket(reached.handshake, connection, self._sealed)
        protocol = as_protocol(behind)
        if self._sockets is not None:
            self._sockets.attach(reached.plain, protocol)
        else:
            await asyncio.get_running_loop().create_connection(lambda: protocol, sock=reached.plain)


def why_lost(error: Exception | None) -> str | None:
    """Why a broker's connection was lost, where that has to be told: in TLS 1.3 a certificate is rejected behind the
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
