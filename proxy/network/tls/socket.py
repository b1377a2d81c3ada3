"""The TLS layer between a socket and a connection after the handshake, for TLS 1.2 and 1.3 (RFC 5246, 8446).

For the connection it is a transport. For the socket it is an asyncio BufferedProtocol.

An event loop's own TLS decrypts megabytes from one client before it serves another, keeps a buffer of 256 KiB per
connection, and discards bytes that are not yet decrypted when a client closes. This layer reads a limited number of
bytes at once. All its connections share one buffer, and it reports the end of file only after all data.
"""

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol, cast

from sluicegate.proxy.network.tls.handshake import Handshake
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.outlets import Transport

_ENCRYPTED_BYTES = 128 * 1024
# The number of bytes that pass through OpenSSL's buffers at once. These buffers never shrink, and each connection has
# four.
_CHUNK_BYTES = 32 * 1024
# The largest TLS record. Parts that fit into one record are sent together.
_RECORD_BYTES = 16 * 1024
_LARGEST_RECORD_BYTES = _RECORD_BYTES + 2048 + 5  # the size after encryption in TLS 1.2 (RFC 5246, 6.2.3)
_NOTHING = memoryview(b"")


class SocketTransport(Transport, Protocol):
    """The transport of a socket: either native or the event loop's."""

    def get_extra_info(self, name: str, /) -> Any:
        """Return `socket`, `peername` or `sockname`, or None if it is unknown."""


def new_encrypted_buffer() -> memoryview:
    """Create the read buffer that all TLS sockets of an event loop share.

    Each socket consumes its bytes before the next read.
    """
    return memoryview(bytearray(_ENCRYPTED_BYTES))


class TlsSocket:
    """Decrypts a socket's bytes for a connection, and encrypts the connection's bytes for the socket."""

    def __init__(self, handshake: Handshake, connection: Connection, encrypted: memoryview) -> None:
        """`encrypted` is the event loop's shared read buffer."""
        self._tls = handshake.tls
        self._incoming = handshake.incoming
        self._outgoing = handshake.outgoing
        self._connection = connection
        self._encrypted = encrypted
        self._received = _NOTHING
        self._transport = cast(SocketTransport, None)  # set when the socket is connected
        self._failure: ssl.SSLError | None = None
        self._close_reason: ssl.SSLError | None = None
        self._paused = False
        self._ended = False
        self._end_reported = False
        self._is_finished = False
        self._closing = False

    # -- called by the socket --------------------------------------------------------------------------------------

    def connection_made(self, transport: SocketTransport) -> None:
        self._transport = transport
        self._connection.connection_made(self)
        self._decrypt_soon()  # these bytes arrived with the end of the handshake

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self._encrypted

    def buffer_updated(self, nbytes: int) -> None:
        new = self._encrypted[:nbytes]
        self._received = memoryview(bytes(self._received) + bytes(new)) if self._received else new
        self._decrypt()
        if self._received:  # the connection is paused, and other sockets use the shared buffer
            self._received = memoryview(bytes(self._received))

    def eof_received(self) -> bool:
        self._ended = True
        self._decrypt()
        return True  # responses to in-flight requests must still be sent

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._connection.connection_lost(self._close_reason or exc)

    # -- called by the connection ----------------------------------------------------------------------------------

    def get_extra_info(self, name: str) -> Any:
        """Return `ssl_object`, or the value that the socket's transport returns."""
        return self._tls if name == "ssl_object" else self._transport.get_extra_info(name)

    def is_closing(self) -> bool:
        """Return whether the connection is closed or closing."""
        return self._closing or self._transport.is_closing()

    def get_write_buffer_size(self) -> int:
        """Return the number of encrypted bytes that the system has not accepted yet."""
        return self._transport.get_write_buffer_size()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send bytes. The caller may modify them afterwards."""
        if not self._is_finished:
            self._encrypt(memoryview(data))

    def writelines(self, list_of_data: Sequence[bytes | bytearray | memoryview]) -> None:
        """Encrypt and send several parts in order."""
        if sum(map(len, list_of_data)) <= _RECORD_BYTES:
            self.write(b"".join(list_of_data))
            return
        for data in list_of_data:
            self.write(data)

    def write_eof(self) -> None:
        """Send close_notify. No more data follow."""
        if self._is_finished:
            return
        self._is_finished = True
        with suppress(ssl.SSLError):  # for example if the peer's close_notify has not arrived yet
            self._tls.unwrap()
        self._send_encrypted()

    def pause_reading(self) -> None:
        """Deliver no data until `resume_reading` is called."""
        self._paused = True
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Deliver data again in a later loop iteration, starting with data that have already arrived."""
        self._paused = False
        self._transport.resume_reading()
        self._decrypt_soon()

    def close(self) -> None:
        """Send close_notify, wait for the peer's close_notify or the end of the connection, then close.

        Closing a socket that has unread bytes may discard data that the peer has not read.
        """
        if self._closing:
            return
        self.write_eof()
        self._closing = True
        self.resume_reading()

    def abort(self) -> None:
        """Close immediately."""
        self._closing = self._is_finished = True
        self._transport.abort()

    # -- decrypting ------------------------------------------------------------------------------------------------

    def _decrypt_soon(self) -> None:
        if self._received or self._incoming.pending or self._tls.pending() or self._ended:
            asyncio.get_running_loop().call_soon(self._decrypt)

    def _decrypt(self) -> None:
        """Deliver received data until the connection pauses, then report the end of file."""
        while not self._paused and not self._closing:
            count = self._read_into(self._connection.get_buffer(-1))
            if count == 0:
                self._report_end()
                break
            self._connection.buffer_updated(count)
        if self._closing:
            self._discard_input()
        self._send_encrypted()  # TLS's own messages, such as key updates

    def _read_into(self, room: memoryview) -> int:
        """Decrypt bytes into `room`: all received bytes, or as many as fit. Return their number."""
        count, size = 0, len(room)
        while count < size and self._failure is None and self._has_input():
            try:
                got = cast(int, self._tls.read(size - count, cast(bytearray, room[count:])))
            except ssl.SSLWantReadError:  # the record is incomplete
                continue
            except ssl.SSLZeroReturnError:  # both sides have sent close_notify
                got = 0
            except ssl.SSLError as error:  # data before the error are still delivered
                self._failure = error
                break
            if got == 0:
                self._ended = True
                break
            count += got
        return count

    def _has_input(self) -> bool:
        """Return whether there is input to decrypt.

        An attempt to decrypt without input costs as much as decrypting a record.
        """
        if self._received and self._incoming.pending <= _LARGEST_RECORD_BYTES:
            self._incoming.write(self._received[:_CHUNK_BYTES])
            self._received = self._received[_CHUNK_BYTES:]
        return self._incoming.pending > 0 or self._tls.pending() > 0

    def _report_end(self) -> None:
        if self._failure is not None:
            self._fail(self._failure)
        elif self._ended and not self._end_reported:
            self._end_reported = True
            self._connection.eof_received()

    def _discard_input(self) -> None:
        nowhere = memoryview(bytearray(_RECORD_BYTES))
        while self._read_into(nowhere):
            pass
        self._received = _NOTHING
        if self._ended or self._failure is not None:
            self._transport.close()

    # -- encrypting ------------------------------------------------------------------------------------------------

    def _encrypt(self, left: memoryview) -> None:
        encrypted = []
        try:
            while left:
                left = left[self._tls.write(left[:_CHUNK_BYTES]) :]
                encrypted.append(self._outgoing.read())
        except ssl.SSLError as error:
            self._fail(error)
        else:
            self._transport.writelines(encrypted)

    def _send_encrypted(self) -> None:
        if self._outgoing.pending:
            self._transport.write(self._outgoing.read())

    def _fail(self, error: ssl.SSLError) -> None:
        """Send the TLS alert if the socket accepts it immediately, then abort the connection."""
        self._close_reason = error
        self._closing = self._is_finished = True
        self._send_encrypted()
        asyncio.get_running_loop().call_soon(self._transport.abort)
