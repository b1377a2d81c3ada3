"""What stands between a socket, whose bytes are sealed, and a connection, that has them open: TLS 1.2 and 1.3 (RFC
5246, 8446), once hands are shaken.

To the connection it is a transport, to the socket what asyncio calls a BufferedProtocol. An event loop's own TLS reads
and opens megabytes of one client before another has its turn, keeps a buffer of 256 KiB for each, and throws away what
it has not opened when a client ends. Here so much is taken at once and no more, all share one buffer, and the end is
told behind everything that came before it.
"""

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol, cast

from sluicegate.proxy.network.tls.handshake import Handshake
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.outlets import Transport

_SEALED_BYTES = 128 * 1024
# What goes through TLS's own buffers at once: they never shrink, and each connection has four.
_PIECE_BYTES = 32 * 1024
# Of TLS: a record holds no more. Several parts that are no more than that together leave as one.
_RECORD_BYTES = 16 * 1024
_LARGEST_RECORD_BYTES = _RECORD_BYTES + 2048 + 5  # sealed, of TLS 1.2 (RFC 5246, 6.2.3)
_NOTHING = memoryview(b"")


class SocketTransport(Transport, Protocol):
    """What leads to a socket, natively or by the event loop."""

    def get_extra_info(self, name: str, /) -> Any:
        """`socket`, `peername` or `sockname`; None where it is not known."""


def new_sealed_buffer() -> memoryview:
    """What all of an event loop's TLS sockets read into: what is in it is taken before the next reads."""
    return memoryview(bytearray(_SEALED_BYTES))


class TlsSocket:
    """See the module."""

    def __init__(self, handshake: Handshake, connection: Connection, sealed: memoryview) -> None:
        """`sealed`: `new_sealed_buffer` of the event loop."""
        self._tls = handshake.tls
        self._incoming = handshake.incoming
        self._outgoing = handshake.outgoing
        self._connection = connection
        self._sealed = sealed
        self._came = _NOTHING
        self._transport = cast(SocketTransport, None)  # until it is connected
        self._failure: ssl.SSLError | None = None
        self._lost_by: ssl.SSLError | None = None
        self._paused = False
        self._ended = False
        self._end_told = False
        self._no_more = False
        self._closing = False

    # -- what the socket tells -------------------------------------------------------------------------------------

    def connection_made(self, transport: SocketTransport) -> None:
        self._transport = transport
        self._connection.connection_made(self)
        self._open_soon()  # what came right behind the handshake

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self._sealed

    def buffer_updated(self, nbytes: int) -> None:
        came = self._sealed[:nbytes]
        self._came = memoryview(bytes(self._came) + bytes(came)) if self._came else came
        self._open()
        if self._came:  # the connection takes no more for now, and the buffer is everybody's
            self._came = memoryview(bytes(self._came))

    def eof_received(self) -> bool:
        self._ended = True
        self._open()
        return True  # what is in flight has to be answered

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._connection.connection_lost(self._lost_by or exc)

    # -- what the connection asks for ------------------------------------------------------------------------------

    def get_extra_info(self, name: str) -> Any:
        """`ssl_object`, or what the socket knows."""
        return self._tls if name == "ssl_object" else self._transport.get_extra_info(name)

    def is_closing(self) -> bool:
        """Whether it has been closed, or is being."""
        return self._closing or self._transport.is_closing()

    def get_write_buffer_size(self) -> int:
        """Sealed bytes that the system has not taken."""
        return self._transport.get_write_buffer_size()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Seal and send bytes; they may change as soon as this is over."""
        if not self._no_more:
            self._seal(memoryview(data))

    def writelines(self, list_of_data: Sequence[bytes | bytearray | memoryview]) -> None:
        """The same of several, in their order."""
        if sum(map(len, list_of_data)) <= _RECORD_BYTES:
            self.write(b"".join(list_of_data))
            return
        for data in list_of_data:
            self.write(data)

    def write_eof(self) -> None:
        """Tell the peer that no more will come (close_notify)."""
        if self._no_more:
            return
        self._no_more = True
        with suppress(ssl.SSLError):  # for one, that the peer's own is still to come
            self._tls.unwrap()
        self._send_sealed()

    def pause_reading(self) -> None:
        """Hand on nothing until `resume_reading`."""
        self._paused = True
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Hand on again, first what came before, in a turn of its own."""
        self._paused = False
        self._transport.resume_reading()
        self._open_soon()

    def close(self) -> None:
        """Say that no more will come, wait for the peer to say so or to go, then close: a socket that is closed with
        something unread may take with it what the peer has not read.
        """
        if self._closing:
            return
        self.write_eof()
        self._closing = True
        self.resume_reading()

    def abort(self) -> None:
        """Close at once."""
        self._closing = self._no_more = True
        self._transport.abort()

    # -- opening ---------------------------------------------------------------------------------------------------

    def _open_soon(self) -> None:
        if self._came or self._incoming.pending or self._tls.pending() or self._ended:
            asyncio.get_running_loop().call_soon(self._open)

    def _open(self) -> None:
        """Hand on what has come, as long as the connection takes it, and then its end."""
        while not self._paused and not self._closing:
            count = self._read_into(self._connection.get_buffer(-1))
            if count == 0:
                self._is_empty()
                break
            self._connection.buffer_updated(count)
        if self._closing:
            self._throw_away()
        self._send_sealed()  # what TLS has to say by itself

    def _read_into(self, room: memoryview) -> int:
        """How much was opened: all there is, or as much as there is room for."""
        count, size = 0, len(room)
        while count < size and self._failure is None and self._has_more():
            try:
                got = cast(int, self._tls.read(size - count, cast(bytearray, room[count:])))
            except ssl.SSLWantReadError:  # of a record a part is there
                continue
            except ssl.SSLZeroReturnError:  # it has ended, as we have
                got = 0
            except ssl.SSLError as error:  # what came before it is still handed on
                self._failure = error
                break
            if got == 0:
                self._ended = True
                break
            count += got
        return count

    def _has_more(self) -> bool:
        """Whether there is something that may be opened. Asking what there is not for it costs as much as a record."""
        if self._came and self._incoming.pending <= _LARGEST_RECORD_BYTES:
            self._incoming.write(self._came[:_PIECE_BYTES])
            self._came = self._came[_PIECE_BYTES:]
        return self._incoming.pending > 0 or self._tls.pending() > 0

    def _is_empty(self) -> None:
        if self._failure is not None:
            self._fail(self._failure)
        elif self._ended and not self._end_told:
            self._end_told = True
            self._connection.eof_received()

    def _throw_away(self) -> None:
        nowhere = memoryview(bytearray(_RECORD_BYTES))
        while self._read_into(nowhere):
            pass
        self._came = _NOTHING
        if self._ended or self._failure is not None:
            self._transport.close()

    # -- sealing ---------------------------------------------------------------------------------------------------

    def _seal(self, left: memoryview) -> None:
        sealed = []
        try:
            while left:
                left = left[self._tls.write(left[:_PIECE_BYTES]) :]
                sealed.append(self._outgoing.read())
        except ssl.SSLError as error:
            self._fail(error)
        else:
            self._transport.writelines(sealed)

    def _send_sealed(self) -> None:
        if self._outgoing.pending:
            self._transport.write(self._outgoing.read())

    def _fail(self, error: ssl.SSLError) -> None:
        """The peer is told what TLS has against it, where it can be told at once; then it is lost."""
        self._lost_by = error
        self._closing = self._no_more = True
        self._send_sealed()
        asyncio.get_running_loop().call_soon(self._transport.abort)
