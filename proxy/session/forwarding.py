"""Sends requests to the broker and adds them to the in-flight queue."""

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, Protocol

from sluicegate.protocol.frame_pool import FramePool
from sluicegate.protocol.framing import Parts, frame_of, size_prefix
from sluicegate.proxy.session.in_flight import InFlightQueue, InFlightRequest

_SIZE = Struct(">i")
# Up to this size, copying a frame costs less than adding a second buffer to a write.
_COPIED_BYTES = 8 * 1024


class BrokerOutlet(Protocol):
    """The output of the connection to the broker."""

    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def write_parts(self, parts: Sequence[bytes | bytearray | memoryview]) -> None: ...

    @property
    def has_sent_all(self) -> bool: ...


class Forwarding:
    """Forwards one session's requests. Frames return to `pool` after the system has accepted their bytes."""

    def __init__(
        self, broker: BrokerOutlet, queue: InFlightQueue, pool: FramePool, call_soon: Callable[..., Any]
    ) -> None:
        self._broker = broker
        self._queue = queue
        self._pool = pool
        self._call_soon = call_soon
        self._sent: list[bytearray] = []

    def produce(self, frame: bytearray, in_flight: InFlightRequest | None) -> None:
        """Send a Produce request unchanged. `in_flight` is None if the request gets no response (acks=0)."""
        if in_flight is not None:
            self._queue.add(in_flight)
        if len(frame) <= _COPIED_BYTES:
            self._broker.write(_SIZE.pack(len(frame)) + frame)
            return
        self._broker.write_parts((_SIZE.pack(len(frame)), frame))
        self._sent.append(frame)
        if len(self._sent) == 1:
            self._call_soon(self._recycle)

    def expect(self, in_flight: InFlightRequest) -> None:
        """Queue a request that is forwarded as it arrives."""
        self._queue.add(in_flight)

    def frame(self, frame: bytearray | bytes, in_flight: InFlightRequest) -> None:
        """Send any other request in one write."""
        self._queue.add(in_flight)
        self._broker.write(frame_of(frame))

    def parts(self, parts: Parts, in_flight: Sequence[InFlightRequest], before: Parts = ()) -> None:
        """Send a changed request. `before` consists of complete frames from the proxy itself, which are sent first."""
        for each in in_flight:
            self._queue.add(each)
        self._broker.write_parts((*before, size_prefix(parts), *parts))

    def _recycle(self) -> None:
        """Return frames to the pool. Frames that the system has not accepted stay with the transport."""
        if self._broker.has_sent_all:
            for frame in self._sent:
                self._pool.recycle(frame)
        self._sent.clear()
