"""Connects to the cluster at the first address that responds.

If none responds, the error gives the reason for each address. Addresses also come from brokers' responses, so they may
contain anything. An impossible address is an ordinary failure with a reason.
"""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from aiohappyeyeballs import start_connection

from sluicegate.config.values.address import HostPort
from sluicegate.proxy.network.happy_eyeballs import NEXT_BROKER_SECONDS, AllAttemptsFailed, happy_eyeballs
from sluicegate.proxy.network.native_sockets import as_protocol
from sluicegate.proxy.network.tls.contexts import TlsContext, tls_failure_message
from sluicegate.proxy.network.tls.handshake import Handshake, handshake_with_broker
from sluicegate.proxy.network.tls.socket import TlsSocket, new_encrypted_buffer
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.outlets import UpstreamUnreachable

if TYPE_CHECKING:
    from sluicegate.proxy.network.plain_socket import PlainSockets


# The delay between two attempts, as RFC 8305 recommends (section 5).
_NEXT_SECONDS = 0.25


async def connect_socket(host: str, port: int) -> socket.socket:
    """Return a connected, non-blocking socket. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    if not found:
        raise OSError(errno.EADDRNOTAVAIL, "the name has no address")
    try:
        return await start_connection(found, happy_eyeballs_delay=_NEXT_SECONDS, loop=loop)
    except OSError as error:
        if error.errno is None:  # the addresses failed for different reasons, which the message lists
            raise
        raise OSError(error.errno, os.strerror(error.errno)) from None
    except RuntimeError as error:  # raised by uvloop
        raise OSError(str(error)) from error


_MAX_PORT = 65535
_MAX_HOST = 255
_MAX_MESSAGE = 300
_MAX_ADDRESS = 100


class ImpossibleAddress(Exception):
    """An address to which no connection is possible. The message gives the reason."""


class HandshakeCutOff(Exception):
    """The peer closed the connection during the TLS handshake."""

    def __init__(self) -> None:
        super().__init__(
            "closed the connection during the TLS handshake: this is probably a plaintext port (upstream.tls is set)"
        )


@dataclass(frozen=True, slots=True)
class _Reached:
    """A new connection to a broker. `handshake` is None without TLS."""

    plain: socket.socket
    handshake: Handshake | None

    def close(self) -> None:
        self.plain.close()


class Dialler:
    """Connects sessions to brokers, each in its own task."""

    def __init__(self, tls: TlsContext | None, timeout_seconds: float, sockets: "PlainSockets | None") -> None:
        """`timeout_seconds` is the limit for one address, including the TLS handshake.

        `sockets` contains the native sockets; it is None without them.
        """
        self._tls = tls
        self._timeout_seconds = timeout_seconds
        self._sockets = sockets
        self._encrypted = new_encrypted_buffer()

    def dial(
        self, addresses: Sequence[HostPort], connection: Connection, failed: Callable[[Exception], None]
    ) -> asyncio.Task[None]:
        """Connect `connection` to the first address that responds. If none does, call `failed` with the error."""
        return asyncio.get_running_loop().create_task(self._dial(addresses, connection, failed))

    async def _dial(
        self, addresses: Sequence[HostPort], connection: Connection, failed: Callable[[Exception], None]
    ) -> None:
        try:
            await self.connect(addresses, connection)
        except Exception as error:
            failed(error)

    async def connect(self, addresses: Sequence[HostPort], connection: Connection) -> None:
        """Connect `connection` to the first address that responds. Raises only UpstreamUnreachable."""
        attempts = [partial(self._reach, address) for address in addresses]
        try:
            reached = await happy_eyeballs(attempts, NEXT_BROKER_SECONDS, _Reached.close)
        except AllAttemptsFailed as none:
            reasons = map(self._reason, addresses, none.errors)
            raise UpstreamUnreachable("; ".join(reasons) or "no address is known") from None
        try:
            await self._attach(reached, connection)
        except BaseException as error:  # also after a cancellation, because no other code closes the socket
            reached.close()
            if isinstance(error, Exception):
                raise UpstreamUnreachable(failure_message(error)) from error
            raise

    async def _reach(self, address: HostPort) -> _Reached:
        check_address(address)
        async with asyncio.timeout(self._timeout_seconds):
            plain = await connect_socket(address.host, address.port)
            try:
                return _Reached(plain, await self._handshake(plain, address.host))
            except BaseException:  # also after a cancellation
                plain.close()
                raise

    async def _handshake(self, plain: socket.socket, host: str) -> Handshake | None:
        return None if self._tls is None else await handshake_with_broker(plain, self._tls.current(), host)

    def _reason(self, address: HostPort, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            reason = f"no response within {self._timeout_seconds} s"
        elif isinstance(error, ConnectionResetError) and self._tls is not None:
            reason = str(HandshakeCutOff())
        else:
            reason = failure_message(error)
        return f"{printable(address)}: {reason}"

    async def _attach(self, reached: _Reached, connection: Connection) -> None:
        with_tls = None if reached.handshake is None else TlsSocket(reached.handshake, connection, self._encrypted)
        protocol = as_protocol(with_tls or connection)
        if self._sockets is not None:
            self._sockets.attach(reached.plain, protocol)
        else:
            await asyncio.get_running_loop().create_connection(lambda: protocol, sock=reached.plain)


def why_lost(error: Exception | None) -> str | None:
    """Return why the connection to a broker was lost if TLS is the cause. Otherwise return None.

    In TLS 1.3 a broker rejects a client certificate only after the handshake.
    """
    return tls_failure_message(error) if isinstance(error, ssl.SSLError) else None


def check_address(address: HostPort) -> None:
    """Check that an address is possible. Raises ImpossibleAddress."""
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


def failure_message(error: Exception) -> str:
    """Return an error's message without error numbers and addresses, shortened if it is long."""
    if isinstance(error, ssl.SSLError):
        message = tls_failure_message(error)
    elif isinstance(error, OSError):
        message = error.strerror or str(error)
    elif isinstance(error, ImpossibleAddress | HandshakeCutOff):
        message = str(error)
    else:
        message = f"{type(error).__name__}: {error}"
    return message[:_MAX_MESSAGE]


def printable(address: HostPort) -> str:
    """Escape and shorten an address for a log line, because a broker may have sent any text."""
    text = str(address)
    safe = text if text.isprintable() else ascii(text)[1:-1]
    return safe if len(safe) <= _MAX_ADDRESS else f"{safe[:_MAX_ADDRESS]}…"
