"""The admin endpoint's connections, which use asyncio's streams.

Their number and duration are limited. Each connection ends within ten seconds, except for a few streams of the web UI.
At the limit, a new connection replaces the oldest one that has sent no request.

A few descriptors are kept in reserve, so the endpoint still accepts connections, one after the other, when the process
has used up all others. A connection's descriptor returns to the reserve atomically (dup2). If it were free even
briefly, another thread could take it.
"""

import asyncio
import errno
import os
import socket
import ssl
import struct
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

MAX_CONNECTIONS = 256
MAX_SLOW = 16
DEADLINE_SECONDS = 10.0
_SPENT_DEADLINE_SECONDS = 0.25
_BACK_OFF_SECONDS = 0.05
_BUFFERED_BYTES = 4096
_RESERVE = 4  # more than one, because another thread may take a descriptor between its release and its use
_SPENT = frozenset({errno.EMFILE, errno.ENFILE})
_CLOSE_AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER with these values discards unsent data


@dataclass(eq=False, slots=True)
class AdminConnection:
    """One accepted socket.

    `has_requested` is true once its request has arrived. `slow` is true if its response takes long to create or to
    send.
    """

    socket: socket.socket
    reader: asyncio.StreamReader
    since: float
    deadline: float
    writer: asyncio.StreamWriter | None = None
    task: "asyncio.Task[None] | None" = None
    timeout: asyncio.Timeout | None = None
    has_requested: bool = False
    slow: bool = False


Serve = Callable[[AdminConnection, asyncio.StreamWriter], Awaitable[None]]


class _ReturningSocket(socket.socket):
    """A socket that passes its descriptor to `give_back` when it is closed."""

    def __init__(self, accepted: socket.socket, give_back: Callable[[int], None]) -> None:
        super().__init__(fileno=accepted.detach())
        self._give_back = give_back

    def close(self) -> None:
        descriptor = self.detach()
        if descriptor >= 0:
            self._give_back(descriptor)


class AdminConnections:
    """Accepts connections on `listening` and serves each one with `serve`. Belongs to one event loop."""

    def __init__(
        self, listening: socket.socket, serve: Serve, tls: "Callable[[], ssl.SSLContext] | None" = None
    ) -> None:
        """`tls` returns the context for a new connection; it is None for plain HTTP."""
        self._listening = listening
        self._serve = serve
        self._tls = tls
        self._is_closed = False
        self._loop = asyncio.get_running_loop()
        self._open: dict[AdminConnection, None] = {}  # the oldest connection is first
        self._null = os.open(os.devnull, os.O_RDONLY)
        self._reserve: list[int] = []
        self._fill_reserve()

    async def accept_for_ever(self) -> None:
        """Accept connections until cancelled, even after errors of peers or a lack of descriptors."""
        while True:
            await self._somebody_waits()
            try:
                connection, _ = self._listening.accept()
            except BlockingIOError:
                continue
            except OSError as error:
                if error.errno in _SPENT:
                    await self._accept_with_the_reserve()
                else:
                    await asyncio.sleep(_BACK_OFF_SECONDS)
                continue
            self._fill_reserve()
            if len(self._open) >= MAX_CONNECTIONS:
                self._close_one(lambda open_one: not open_one.has_requested)
            self._take(connection, DEADLINE_SECONDS)
            await asyncio.sleep(0)  # lets connections that are already accepted run first

    def mark_slow(self, connection: AdminConnection) -> None:
        """Mark a connection as slow.

        The number of slow connections is limited, because clients may request pages and never read them.
        """
        connection.slow = True
        if sum(open_one.slow for open_one in self._open) > MAX_SLOW:
            self._close_one(lambda open_one: open_one.slow and open_one is not connection)

    def extend_deadline(self, connection: AdminConnection, seconds: float) -> None:
        """Let a connection last for `seconds` from now.

        The caller limits how many connections get this extension.
        """
        assert connection.timeout is not None
        connection.deadline = time.monotonic() + seconds
        connection.timeout.reschedule(self._loop.time() + seconds)

    async def close(self) -> None:
        """Close all connections."""
        for connection in list(self._open):
            self._end(connection)
        self._open.clear()
        self._is_closed = True
        for fd in (self._null, *self._reserve):
            os.close(fd)
        self._reserve.clear()

    def _take(self, accepted: socket.socket, seconds: float) -> AdminConnection:
        accepted.setblocking(False)
        now = time.monotonic()
        reader = asyncio.StreamReader(_BUFFERED_BYTES)
        connection = AdminConnection(_ReturningSocket(accepted, self._take_back), reader, now, now + seconds)
        self._open[connection] = None
        connection.task = self._loop.create_task(self._serve_within(connection, seconds))
        return connection

    async def _serve_within(self, connection: AdminConnection, seconds: float) -> None:
        try:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(seconds) as connection.timeout:
                    connection.writer = await self._writer_of(connection)
                    await self._serve(connection, connection.writer)
        finally:
            self._forget(connection)

    async def _writer_of(self, connection: AdminConnection) -> asyncio.StreamWriter:
        """Connect the streams, after a TLS handshake if TLS is configured.

        From then on, the transport owns the socket.
        """
        protocol = asyncio.StreamReaderProtocol(connection.reader)
        tls = None if self._tls is None else self._tls()
        transport, _ = await self._loop.connect_accepted_socket(lambda: protocol, connection.socket, ssl=tls)
        # With these limits `drain` waits until all data are sent. With high=0, TLS would wait forever.
        transport.set_write_buffer_limits(high=1, low=0)
        return asyncio.StreamWriter(transport, protocol, connection.reader, self._loop)

    async def _accept_with_the_reserve(self) -> None:
        """Accept the next connection on a reserved descriptor, and wait until that descriptor is returned."""
        accepted = None
        while accepted is None and self._reserve:
            os.close(self._reserve.pop())
            with suppress(OSError):
                accepted = self._listening.accept()[0]
        if accepted is not None:
            task = self._take(accepted, _SPENT_DEADLINE_SECONDS).task
            assert task is not None
            await asyncio.wait([task])
        else:
            self._close_a_silent_one()
            await asyncio.sleep(_BACK_OFF_SECONDS)
        self._fill_reserve()

    def _close_a_silent_one(self) -> None:
        """Refill the reserve: close the oldest connection that has had time to send a request and has sent none."""
        requested_by = time.monotonic() - _SPENT_DEADLINE_SECONDS
        silent = next((one for one in self._open if not one.has_requested and one.since < requested_by), None)
        if silent is not None:
            self._end(silent)

    async def _somebody_waits(self) -> None:
        """Wait for a connection.

        Without a free descriptor accept() fails, whether or not a client is waiting.
        """
        waits = asyncio.Event()
        self._loop.add_reader(self._listening, waits.set)
        try:
            await waits.wait()
        finally:
            self._loop.remove_reader(self._listening)

    def _fill_reserve(self) -> None:
        with suppress(OSError):
            while len(self._reserve) < _RESERVE:
                self._reserve.append(os.dup(self._null))

    def _close_one(self, preferred: Callable[[AdminConnection], bool]) -> None:
        """Close the oldest preferred connection, or the oldest of all if none is preferred."""
        chosen = next((one for one in self._open if preferred(one)), None) or next(iter(self._open))
        self._end(chosen)

    def _end(self, connection: AdminConnection) -> None:
        if connection.task is not None:
            connection.task.cancel()
        self._forget(connection)

    def _forget(self, connection: AdminConnection) -> None:
        if self._open.pop(connection, connection) is None:
            with suppress(OSError):
                if not connection.has_requested or time.monotonic() >= connection.deadline:
                    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _CLOSE_AT_ONCE)
            if connection.writer is not None:
                connection.writer.transport.abort()
            elif connection.timeout is None:  # its task has not started
                connection.socket.close()

    def _take_back(self, descriptor: int) -> None:
        if len(self._reserve) < _RESERVE and not self._is_closed:
            self._reserve.append(os.dup2(self._null, descriptor, inheritable=False))
        else:
            os.close(descriptor)
