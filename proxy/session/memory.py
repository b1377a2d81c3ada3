"""Limits the memory that all connections together may use for gathered frames. Bytes are reserved as they arrive.

The budget has separate shares for small requests, large requests, small responses and large responses. If a share is
exhausted, connections wait in line. The first connection with a partial frame may exceed the share by the size of the
largest frame, so that two partial frames never wait for each other. The fast path's partial requests have a separate
share (`fast_path_buffer`), and no connection waits for that share.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

# A frame up to this size counts as small.
_SMALL_FRAME_BYTES = 1 << 20
# At most this many waiting connections are woken in one loop iteration.
_WOKEN_AT_ONCE = 16

READ_BUFFER_BYTES = 512 * 1024
# The initial read size. A paused client keeps at most one read unhandled, so its buffer stays small until its requests
# are larger.
_FRAMES_BYTES = 128 * 1024
_FIRST_REQUESTS_BYTES = 4 * 1024
_RESPONSES_BYTES = 256 * 1024


def new_read_buffer() -> memoryview:
    """Create the read buffer that all connections of an event loop share. Its bytes are used before the next read."""
    return memoryview(bytearray(READ_BUFFER_BYTES))


def frames_part(read_buffer: memoryview) -> memoryview:
    """Return the part of the buffer for reading from clients.

    The rest of a larger frame is read into a separate buffer.
    """
    return read_buffer[:_FRAMES_BYTES]


def responses_part(read_buffer: memoryview) -> memoryview:
    """Return the part of the buffer for reading from brokers."""
    return read_buffer[:_RESPONSES_BYTES]


def first_requests_part(read_buffer: memoryview) -> memoryview:
    """Return the part of the buffer that is used until it is known whether a quota pauses the client."""
    return read_buffer[:_FIRST_REQUESTS_BYTES]


class MemoryShare:
    """One share of the budget. Bytes are reserved in the order of the requests for them.

    `call_soon` runs a function in a later loop iteration.
    """

    def __init__(self, total_bytes: int, call_soon: Callable[[Callable[[], None]], Any]) -> None:
        self.total_bytes = total_bytes
        self._free = total_bytes
        self._call_soon = call_soon
        self._waiting: deque[Gathering] = deque()
        self._beyond: Gathering | None = None
        self._waking = False

    @property
    def held_bytes(self) -> int:
        """The number of reserved bytes, including those beyond the share."""
        return self.total_bytes - self._free

    @property
    def is_spent(self) -> bool:
        """Whether a connection waits for bytes of this share."""
        return len(self._waiting) > 0

    def take(self, who: "Gathering", size: int) -> bool:
        """Reserve `size` bytes for `who`.

        Return True if they are reserved now. Otherwise `add_granted` of `who` is called later.
        """
        if (not self._waiting and size <= self._free) or who is self._beyond:
            self._free -= size
            return True
        self._waiting.append(who)
        self._wake()
        return False

    def release(self, who: "Gathering", size: int) -> None:
        """Free reserved bytes. The connection that has waited longest is served first."""
        self._free += size
        if who is self._beyond:
            self._beyond = None
        if self._waiting:
            self._wake()

    def forget(self, who: "Gathering") -> None:
        """Remove a connection from the line."""
        if who in self._waiting:
            self._waiting.remove(who)

    def _wake(self) -> None:
        """Wake waiting connections in a later loop iteration, because each may free bytes and wake others."""
        if not self._waking:
            self._waking = True
            self._call_soon(self._wake_some)

    def _wake_some(self) -> None:
        self._waking = False
        for _ in range(_WOKEN_AT_ONCE):
            if not self._waiting:
                return
            first = self._waiting[0]
            if first.wanted > self._free:
                if self._beyond is not None:
                    return
                self._beyond = first
            self._waiting.popleft()
            self._free -= first.wanted
            first.add_granted()
        if self._waiting:
            self._wake()


class Gathering:
    """The bytes that one direction of a connection holds. `when_granted` is called when a wait has ended."""

    def __init__(self, share: MemoryShare, when_granted: Callable[[], None]) -> None:
        self._share = share
        self._when_granted = when_granted
        self.held = 0
        self.wanted = 0

    def reserve(self, more: int) -> bool:
        """Reserve `more` bytes. Return True if they are reserved now. Otherwise `when_granted` is called later."""
        if more == 0 or self._share.take(self, more):
            self.held += more
            return True
        self.wanted = more
        return False

    def add_granted(self) -> None:
        """Add the requested bytes, which are now reserved."""
        self.held += self.wanted
        self.wanted = 0
        self._when_granted()

    def settle(self) -> None:
        """Free all bytes."""
        if self.held or self._share._beyond is self:
            held, self.held = self.held, 0
            self._share.release(self, held)

    def stop_waiting(self) -> None:
        """Cancel the wait."""
        if self.wanted:
            self.wanted = 0
            self._share.forget(self)

    def leave(self) -> None:
        """Free everything, because the connection is closed."""
        self.stop_waiting()
        self.settle()
        self._when_granted = _nobody_waits

    @property
    def is_waiting(self) -> bool:
        """Whether this direction waits for bytes."""
        return self.wanted > 0

    @property
    def other_connections_wait(self) -> bool:
        """Whether other connections wait for bytes of the same share."""
        return self._share.is_spent


def _nobody_waits() -> None: ...


class GatherBudget:
    """A proxy's shares of the budget. Of `total_bytes`, `frame_bytes` are kept for one frame beyond its share."""

    def __init__(self, total_bytes: int, frame_bytes: int, call_soon: Callable[[Callable[[], None]], Any]) -> None:
        self.small_frame_bytes = min(_SMALL_FRAME_BYTES, total_bytes // 8)
        self.small = MemoryShare(total_bytes // 4, call_soon)
        self.small_responses = MemoryShare(total_bytes // 16, call_soon)
        self.large_responses = MemoryShare(total_bytes // 16, call_soon)
        self.fast_path_bytes = total_bytes // 16
        self.large = MemoryShare(max(total_bytes * 9 // 16 - frame_bytes, 0), call_soon)
