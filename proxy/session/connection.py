"""One connection to a client or a broker, with a FrameReader for input and backpressure for output.

A connection opens no socket. An event loop calls it, and it writes to a Transport.

Reading is paused while there is at least one pause reason (`pause`, `resume`). Bytes that have already arrived stay in
a small backlog. After resuming, the backlog is read first, in a later loop iteration, so that resuming is never
re-entrant. All connections of a loop share one read buffer, because its bytes are used before the next read. A gathered
frame is read into its own buffer.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from sluicegate.protocol.errors import SenderError
from sluicegate.protocol.framing import FrameReader
from sluicegate.proxy.session.outlets import (
    DescribePeer,
    LoopCalls,
    PeerInfo,
    Timer,
    Transport,
    discard_output,
    is_gone,
)
from sluicegate.proxy.session.pause_reason import PauseListener, PauseReason


class ConnectionOwner(Protocol):
    """Receives the events of a connection."""

    def on_open(self, connection: "Connection") -> None:
        """Called when the connection is open."""

    def on_bytes_taken(self, connection: "Connection") -> None:
        """Called when all arrived bytes were read, or when a pause has stopped reading.

        Not called if the reader is settled.
        """

    def on_sender_error(self, connection: "Connection", error: SenderError) -> None:
        """Called when the peer violated the protocol."""

    def on_internal_error(self, connection: "Connection", error: Exception) -> None:
        """Called when the proxy failed to handle the input."""

    def on_eof(self, connection: "Connection") -> None:
        """Called when the peer has ended its stream, and all of it was read."""

    def on_lost(self, connection: "Connection", error: Exception | None) -> None:
        """Called when the connection is closed."""

    def on_full(self, connection: "Connection", full: bool) -> None:
        """Called when the write buffer is full (True), or has enough room again (False)."""


class _NoOwner:
    """A connection's owner after its session has ended. It ignores all events."""

    def on_open(self, connection: "Connection") -> None:
        connection.abort()

    def on_bytes_taken(self, connection: "Connection") -> None: ...

    def on_sender_error(self, connection: "Connection", error: SenderError) -> None: ...

    def on_internal_error(self, connection: "Connection", error: Exception) -> None: ...

    def on_eof(self, connection: "Connection") -> None: ...

    def on_lost(self, connection: "Connection", error: Exception | None) -> None: ...

    def on_full(self, connection: "Connection", full: bool) -> None: ...


_NO_OWNER = _NoOwner()
# A closing connection's peer has this time to read the remaining output.
_CLOSE_SECONDS = 5.0
_NOBODY = PeerInfo("?", "?")

_Write = Callable[[bytes | bytearray | memoryview], None]


class DirectOutlet:
    """A transport that accepts bytes from a shared buffer without a new bytes object, for example a native socket."""

    def put(self, data: bytes, size: int) -> None:
        """Send data[:size] after all earlier output. The caller may change the bytes once this method returns."""
        raise NotImplementedError


class Connection:
    """See the module docstring. Implements asyncio's BufferedProtocol."""

    def __init__(
        self,
        owner: ConnectionOwner,
        reader: FrameReader,
        shared_buffer: memoryview,
        describe_peer: DescribePeer,
        loop: LoopCalls,
    ) -> None:
        """`shared_buffer` is the read buffer while no frame is gathered.

        `last_read` is the size of the last read in bytes. `address` is the address under which fair scheduling counts
        the connection.
        """
        self._owner = owner
        self._reader = reader
        self._shared = shared_buffer
        self._describe_peer = describe_peer
        self._loop = loop
        self._transport: Transport | None = None
        self._write: _Write = discard_output
        self._is_closing: Callable[[], bool] = is_gone
        self._pause_reasons: set[PauseReason] | None = None
        self._backlog = b""
        self._eof = False
        self._eof_reported = False
        self._into_frame = False
        self._taking = False
        self._paused = False
        self._closing = False
        self._resume_scheduled = False
        self._close_timer: Timer | None = None
        self._listener: PauseListener | None = None
        self.bytes_in = 0
        self.last_read = 0
        self.closed = False
        self.is_full = False
        self.peer_info = _NOBODY
        self.address = ""

    @property
    def is_open(self) -> bool:
        """Whether the connection is open."""
        return self._transport is not None

    @property
    def mid_frame(self) -> bool:
        """Whether part of a frame has been received."""
        return self._reader.mid_frame

    @property
    def mid_pass(self) -> bool:
        """Whether part of a frame has been forwarded."""
        return self._reader.mid_pass

    @property
    def is_gathering(self) -> bool:
        """Whether part of a frame has been gathered."""
        return self._reader.is_gathering

    @property
    def begun(self) -> memoryview | None:
        """The bytes of a partly gathered frame that have arrived, or None if there are none.

        Callers must not keep them.
        """
        return self._reader.begun()

    @property
    def unread(self) -> bytes:
        """The bytes that have arrived and wait for a pause to end."""
        return self._backlog

    @property
    def frames_ended(self) -> int:
        """The number of complete frames."""
        return self._reader.frames_ended

    @property
    def is_paused(self) -> bool:
        """Whether the proxy has paused reading."""
        return bool(self._pause_reasons)

    @property
    def pause_reasons(self) -> tuple[PauseReason, ...]:
        """The current pause reasons. Thread-safe."""
        return () if self._pause_reasons is None else tuple(self._pause_reasons)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes. The caller must not change the buffer until `has_sent_all` is true."""
        if not self._is_closing():
            self._write(data)

    def write_parts(self, parts: Sequence[bytes | bytearray | memoryview]) -> None:
        """Send several buffers in order, without joining them."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.writelines(parts)

    def pass_on(self, data: bytes, size: int) -> None:
        """Send data[:size] from a read buffer. The bytes are copied only if the system does not accept them now."""
        transport: object = self._transport
        if isinstance(transport, DirectOutlet):
            outlet = transport
            outlet.put(data, size)
        else:
            self.write(data[:size])

    def read_into(self, shared_buffer: memoryview) -> None:
        """Replace the shared read buffer. Must not be called while a frame is gathered."""
        self._shared = shared_buffer

    def forget(self) -> None:
        """Stop calling the owner, which breaks the reference cycle."""
        self._owner = _NO_OWNER
        self._reader.forget()

    @property
    def has_sent_all(self) -> bool:
        """Whether the system has accepted all output."""
        return self._transport is None or self._transport.get_write_buffer_size() == 0

    @property
    def unsent_bytes(self) -> int:
        """The number of output bytes that the system has not yet accepted."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def close(self) -> None:
        """Send the buffered output, then close. Disconnect a peer that does not read the output within 5 s."""
        if self._transport is None or self._closing:
            return
        self._closing = True
        self._backlog = b""
        if self.unsent_bytes > 0 or self.peer_info.is_tls:
            self._close_timer = self._loop.call_later(_CLOSE_SECONDS, self.abort)
        self._transport.close()

    def abort(self) -> None:
        """Close immediately."""
        if self._transport is not None and not self.closed:
            self._transport.abort()

    @property
    def can_half_close(self) -> bool:
        """Whether `write_eof` leaves the other direction open. A broker closes a half-closed TLS connection."""
        return not self.peer_info.is_tls

    def write_eof(self) -> None:
        """Send the buffered output, then end the output. Reading continues."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write_eof()

    def report_pauses(self, listener: PauseListener) -> None:
        """Call `listener` at the start and the end of each pause."""
        self._listener = listener

    def pause(self, reason: PauseReason) -> None:
        """Stop reading until `resume(reason)`."""
        if self._pause_reasons is None:
            self._pause_reasons = set()
        if self._listener is not None and reason not in self._pause_reasons:
            self._listener(reason, True)
        self._pause_reasons.add(reason)
        self._reader.suspended = True
        self._stop_reading()

    def resume(self, reason: PauseReason) -> None:
        """Remove the pause reason `reason`.

        After the last one is removed, reading resumes, and the backlog is read in a later loop iteration.
        """
        if not self._lift(reason):
            return
        if self._taking:  # the read in progress continues by itself
            self._reader.suspended = False
        elif not self._backlog and not self._eof:
            self._continue()
        elif not self._resume_scheduled:
            self._resume_scheduled = True
            self._loop.later(self._continue, self.address)

    def resume_now(self, reason: PauseReason) -> None:
        """Remove a pause reason and read the backlog immediately.

        Only for callers in their own loop iteration.
        """
        if self._lift(reason):
            self._reader.suspended = False
            if not self._taking:
                self._continue()

    def _lift(self, reason: PauseReason) -> bool:
        """Remove a pause reason, and return whether it was the last one."""
        if not self._pause_reasons or reason not in self._pause_reasons:
            return False
        self._pause_reasons.discard(reason)
        if self._listener is not None:
            self._listener(reason, False)
        return not self._pause_reasons and not self.closed

    def _stop_reading(self) -> None:
        if self._transport is not None and not self._paused and not self._eof and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def _continue(self) -> None:
        self._resume_scheduled = False
        if not self._pause_reasons:
            self._reader.suspended = False
        while self._backlog and not self._pause_reasons and not self.closed:
            self._take_backlog()
        if self._pause_reasons or self.closed:
            return
        if self._eof:
            self._report_eof()
        elif self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()

    def connection_made(self, transport: Transport) -> None:
        self._transport = transport
        self._write, self._is_closing = transport.write, transport.is_closing
        if self._pause_reasons:
            self._stop_reading()
        try:
            self.peer_info = self._describe_peer(transport)
            self._owner.on_open(self)
        except Exception as error:
            self._owner.on_internal_error(self, error)

    def get_buffer(self, sizehint: int) -> memoryview:
        # Bytes are read directly into the frame only if no earlier bytes are waiting.
        view = None if self._pause_reasons or self._backlog else self._reader.gathering_view()
        self._into_frame = view is not None  # the buffer of the previous call may not have been used
        return self._shared if view is None else view

    def buffer_updated(self, nbytes: int) -> None:
        self._taking = True
        self.bytes_in += nbytes
        self.last_read = nbytes
        try:
            if self._into_frame:
                self._into_frame = False
                self._reader.gathered(nbytes)
            else:
                self._receive(self._shared, nbytes)
            if not self._reader.settled:
                self._owner.on_bytes_taken(self)
        except SenderError as error:
            self._owner.on_sender_error(self, error)
        except Exception as error:
            self._owner.on_internal_error(self, error)
        finally:
            self._taking = False
        if self._paused or self._backlog or self._eof:
            self._continue()

    def eof_received(self) -> bool:
        self._eof = True
        if not self._pause_reasons and not self._resume_scheduled:
            self._report_eof()
        return True  # keep the transport open, because requests are in flight

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self._backlog = b""
        self._reader.drop()
        self._transport = None  # drop it, because a TLS transport has large buffers
        self._write, self._is_closing = discard_output, is_gone
        if self._close_timer is not None:
            self._close_timer.cancel()
        try:
            self._owner.on_lost(self, exc)
        except Exception as error:
            self._owner.on_internal_error(self, error)

    def pause_writing(self) -> None:
        self.is_full = True
        self._owner.on_full(self, True)

    def resume_writing(self) -> None:
        self.is_full = False
        self._owner.on_full(self, False)

    def _receive(self, data: memoryview, end: int) -> None:
        """Pass data[:end] to the reader. Bytes that a pause leaves unread are added to the backlog."""
        used = self._reader.receive(data, end)
        if used < end and not self._closing:
            self._backlog += bytes(data[used:end])  # a transport may still deliver bytes after it was paused

    def _take_backlog(self) -> None:
        backlog, self._backlog = self._backlog, b""
        self.last_read = len(backlog)
        self._taking = True
        try:
            self._receive(memoryview(backlog), len(backlog))
            self._owner.on_bytes_taken(self)
        except SenderError as error:
            self._owner.on_sender_error(self, error)
        except Exception as error:
            self._owner.on_internal_error(self, error)
        finally:
            self._taking = False

    def _report_eof(self) -> None:
        if self._eof_reported:
            return
        self._eof_reported = True
        try:
            self._owner.on_eof(self)
        except Exception as error:
            self._owner.on_internal_error(self, error)
