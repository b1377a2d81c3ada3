"""Cuts a byte stream into Kafka's size-prefixed frames. No sockets: bytes go in, a handler is told what they are.

A frame is an int32 size (bytes, big-endian) and that many bytes. As soon as its first bytes are there the handler
says whether the frame is to be gathered whole or may pass on as it arrives; so an opaque frame of any size is never
held, and one that is gathered is read straight into its own buffer (`gathering_view`).
"""

from enum import Enum
from struct import Struct
from typing import Protocol

from protocol.errors import FrameSizeError

_SIZE = Struct(">i")
SIZE_BYTES = _SIZE.size
# A gathered frame's buffer starts with what has arrived and grows as bytes really come: a size is only a claim.
_FIRST_BUFFER_BYTES = 1 << 20


class Disposition(Enum):
    """What to do with a frame whose head is known."""

    STREAM = "hand its bytes on as they arrive"
    GATHER = "collect it whole"


class FrameHandler(Protocol):
    """Who is told about frames. Raising stops the reader where it stands."""

    def on_head(self, size: int, head: bytes) -> Disposition:
        """A frame of `size` bytes starts with `head` (up to the reader's head size, size prefix not included)."""

    def on_pass(self, data: memoryview) -> None:
        """The next bytes of frames that pass, size prefixes included; valid only during the call."""

    def on_frame(self, frame: bytearray) -> None:
        """A gathered frame, without its size prefix; the handler may keep it."""


class FrameReader:
    """One direction of one connection.

    `head_bytes`: how much of a frame the handler wants to see before it decides. `max_frame_bytes`: larger claims
    raise FrameSizeError. The handler may set `suspended` in a callback; the reader then stops behind that frame.
    """

    def __init__(self, handler: FrameHandler, head_bytes: int, max_frame_bytes: int) -> None:
        self.suspended = False
        self._handler = handler
        self._prefix_bytes = SIZE_BYTES + head_bytes
        self._max_frame_bytes = max_frame_bytes
        self._prefix = bytearray()
        self._size = 0
        self._pass_left = 0
        self._frame: bytearray | None = None
        self._filled = 0

    @property
    def mid_frame(self) -> bool:
        """Whether a frame has begun and not ended."""
        return bool(self._prefix) or self._pass_left > 0 or self._frame is not None

    @property
    def mid_pass(self) -> bool:
        """Whether a frame that passes was handed on in part."""
        return self._pass_left > 0

    def receive(self, data: memoryview) -> int:
        """Take bytes off the wire; returns how many were used (fewer only when `suspended` was set)."""
        position, end = 0, len(data)
        while position < end and not self.suspended:
            if self._pass_left:
                position += self._pass(data[position : position + self._pass_left])
            elif self._frame is not None:
                position += self._fill(data[position:])
            else:
                position = self._begin(data, position)
        return position

    def gathering_view(self) -> memoryview | None:
        """Where the next bytes of a gathered frame may be read to directly; None when no frame is being gathered."""
        if self._frame is None:
            return None
        if self._filled == len(self._frame):
            self._grow()
        return memoryview(self._frame)[self._filled :]

    def gathered(self, count: int) -> None:
        """`count` bytes were read into `gathering_view()`."""
        self._filled += count
        self._finish_frame_if_full()

    def _begin(self, data: memoryview, position: int) -> int:
        """Read the size and the head; for a frame that passes, its known bytes are handed on at once."""
        start = position
        if self._prefix or len(data) - position < self._prefix_bytes:
            position = self._collect_prefix(data, position)
            if not self._prefix_complete():
                return position
            prefix: bytes | memoryview = bytes(self._prefix)
        else:
            prefix = data[position : position + self._prefix_bytes]
            self._size = self._checked_size(prefix)
            position += min(self._prefix_bytes, SIZE_BYTES + self._size)
            prefix = prefix[: position - start]
        collected = bool(self._prefix)
        self._prefix.clear()
        head = bytes(prefix[SIZE_BYTES:])
        if self._handler.on_head(self._size, head) is Disposition.GATHER:
            self._start_gathering(head)
            return position
        if collected:
            self._pass_left = self._size - len(head)
            self._handler.on_pass(memoryview(prefix))
            return position
        self._pass_left = SIZE_BYTES + self._size
        return start

    def _collect_prefix(self, data: memoryview, position: int) -> int:
        while position < len(data) and not self._prefix_complete():
            want = SIZE_BYTES if len(self._prefix) < SIZE_BYTES else self._wanted_prefix()
            taken = data[position : position + want - len(self._prefix)]
            self._prefix += taken
            position += len(taken)
            if len(self._prefix) == SIZE_BYTES:
                self._size = self._checked_size(self._prefix)
        return position

    def _wanted_prefix(self) -> int:
        return min(self._prefix_bytes, SIZE_BYTES + self._size)

    def _prefix_complete(self) -> bool:
        return len(self._prefix) >= SIZE_BYTES and len(self._prefix) == self._wanted_prefix()

    def _checked_size(self, prefix: bytearray | memoryview) -> int:
        size: int = _SIZE.unpack_from(prefix)[0]
        if size < 0:
            raise FrameSizeError(f"a frame claims a negative size ({size})", size, bytes(prefix))
        if size > self._max_frame_bytes:
            reason = f"a frame claims {size} bytes, more than the {self._max_frame_bytes} allowed"
            raise FrameSizeError(reason, size, bytes(prefix))
        return size

    def _pass(self, part: memoryview) -> int:
        self._pass_left -= len(part)
        self._handler.on_pass(part)
        return len(part)

    def _start_gathering(self, head: bytes) -> None:
        self._frame = bytearray(head)
        self._filled = len(head)
        self._finish_frame_if_full()

    def _grow(self) -> None:
        assert self._frame is not None
        step = max(_FIRST_BUFFER_BYTES, len(self._frame))
        self._frame.extend(bytes(min(step, self._size - len(self._frame))))

    def _fill(self, data: memoryview) -> int:
        view = self.gathering_view()
        assert view is not None
        count = min(len(view), len(data))
        view[:count] = data[:count]
        view.release()
        self.gathered(count)
        return count

    def _finish_frame_if_full(self) -> None:
        if self._frame is not None and self._filled == self._size:
            frame, self._frame = self._frame, None
            self._handler.on_frame(frame)


def frame_of(*parts: bytes | bytearray | memoryview) -> bytes:
    """One frame of these parts, size prefix first."""
    return b"".join((_SIZE.pack(sum(map(len, parts))), *parts))
