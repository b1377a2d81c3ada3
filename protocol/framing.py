"""Splits a byte stream into Kafka's size-prefixed frames, without sockets.

The caller passes bytes, and a handler receives frames. A frame is an int32 size (bytes, big-endian), followed by that
many bytes. When its first bytes have arrived, the handler decides whether the frame is gathered as a whole or streamed
as it arrives. Streamed frames of any size are therefore never buffered, and a gathered frame is read directly into its
own buffer (`gathering_view`). Compiled with the types in framing.pxd if a C compiler is installed.
"""

from collections.abc import Sequence
from enum import Enum
from struct import Struct
from typing import Protocol

from sluicegate.protocol.errors import FrameSizeError
from sluicegate.protocol.frame_pool import FramePool

_SIZE = Struct(">i")
SIZE_BYTES = _SIZE.size
_SIZE_BYTES = SIZE_BYTES


class Disposition(Enum):
    """What the reader does with a frame after its first bytes have arrived."""

    STREAM = "pass its bytes on as they arrive"
    GATHER = "collect the whole frame"


_GATHER = Disposition.GATHER
_LEAST_ROOM_BYTES = 4 * 1024
# A larger read would block other connections for too long.
_MOST_ROOM_BYTES = 512 * 1024
_ZEROS = memoryview(bytes(_MOST_ROOM_BYTES))
_NOWHERE = memoryview(bytearray())


class FrameHandler(Protocol):
    """A receiver of frames. An exception stops the reader at its current position."""

    def on_head(self, size: int, head: bytes) -> Disposition:
        """Decide what to do with a frame of `size` bytes. `head` is its beginning, up to the reader's head size."""

    def on_pass(self, data: memoryview) -> None:
        """Receive the next bytes of streamed frames, with size prefixes. They are valid only during the call."""

    def on_room(self, more: int, size: int) -> None:
        """Account for `more` bytes of a frame of `size`. Suspend the reader if there is no memory for them."""

    def on_frame(self, frame: bytearray) -> None:
        """Receive a gathered frame, without its size prefix. The handler may keep it, or return it to the pool."""


class OrdinaryFrames:
    """A fast path that forwards ordinary frames before a FrameHandler receives them.

    `taken` is the number of frames that the last call forwarded. `settled` is whether these frames need no further
    work. If the beginning of a frame is kept because a handler would gather the frame, `left` is the number of missing
    bytes.
    """

    def __init__(self) -> None:
        self.taken = 0
        self.settled = False
        self.left = 0

    def take(self, data: memoryview, position: int, end: int) -> int:
        """Forward whole frames from data[position] on, and keep the beginning of the last frame.

        Returns the position of the first frame that a handler must receive.
        """
        self.taken = 0
        self.settled = False
        return position

    def rest_buffer(self) -> memoryview:
        """Return the buffer for the missing bytes (`left`)."""
        return _NOWHERE

    def take_rest(self, count: int) -> bytearray | None:
        """Process `count` bytes that were read into `rest_buffer()`.

        Returns the whole frame, without its size, if a handler must receive it. Otherwise returns None.
        """
        return None

    def drop(self) -> None:
        """Discard the incomplete frame, because no more bytes will arrive."""
        self.left = 0


class _NoHandler:
    """A handler that ignores all frames, for a reader without a handler."""

    def on_head(self, size: int, head: bytes) -> Disposition:
        return Disposition.STREAM

    def on_pass(self, data: memoryview) -> None: ...

    def on_room(self, more: int, size: int) -> None: ...

    def on_frame(self, frame: bytearray) -> None: ...


NO_HANDLER = _NoHandler()


class FrameReader:
    """A reader of one direction of one connection.

    - `head_bytes`: the number of bytes that the handler needs for its decision.
    - `max_frame_bytes`: larger frames raise FrameSizeError.
    - `ordinary`: forwards frames before the handler receives them.
    - `suspended`: the handler may set it in a callback. The reader then stops after that frame, or within the frame
      that it gathers.
    - `frames_ended`: the number of whole frames of both kinds.
    - `settled`: whether the last call received only ordinary frames, which need no further work.
    """

    def __init__(
        self,
        handler: FrameHandler,
        head_bytes: int,
        max_frame_bytes: int,
        pool: FramePool,
        ordinary: OrdinaryFrames | None = None,
    ) -> None:
        self.suspended = False
        self.frames_ended = 0
        self.settled = False
        self._handler = handler
        self._ordinary = ordinary
        self._pool = pool
        self._prefix_bytes = SIZE_BYTES + head_bytes
        self._max_frame_bytes = max_frame_bytes
        self._prefix = b""
        self._size = 0
        self._pass_left = 0
        self._frame: bytearray | None = None
        self._filled = 0
        self._room = 0

    @property
    def mid_frame(self) -> bool:
        """Whether a frame is incomplete."""
        return self._pass_left > 0 or self.is_gathering or len(self._prefix) > 0

    @property
    def mid_pass(self) -> bool:
        """Whether a streamed frame is incomplete."""
        return self._pass_left > 0

    @property
    def is_gathering(self) -> bool:
        """Whether part of a gathered frame is buffered."""
        return self._frame is not None or self._ordinary_has_begun()

    def begun(self) -> memoryview | None:
        """Return the received part of the frame that is being gathered, without its size prefix.

        Returns None if no frame is being gathered.
        """
        return None if self._frame is None else memoryview(self._frame)[: self._filled]

    def receive(self, data: memoryview, end: int) -> int:
        """Process data[:end] from the wire. Return the number of bytes used.

        It is less than `end` only if `suspended` was set.
        """
        position = 0
        self.settled = False
        while position < end and not self.suspended:
            if self._pass_left > 0:
                count = min(self._pass_left, end - position)
                self._pass_left -= count
                if self._pass_left == 0:
                    self.frames_ended += 1
                self._handler.on_pass(data[position : position + count])
                position += count
            elif self._frame is not None or self._ordinary_has_begun():
                position += self._fill(data, position, end)
            elif not self._prefix and end - position >= self._prefix_bytes:
                ordinary = self._ordinary
                if ordinary is not None:
                    start = position
                    position = ordinary.take(data, start, end)
                    self.frames_ended += ordinary.taken
                    self.settled = start == 0 and position == end and ordinary.settled
                    if self.suspended or end - position < self._prefix_bytes:
                        continue
                position = self._begin(data, position, end)
            else:
                position = self._collect_prefix(data, position, end)
        return position

    def drop(self) -> None:
        """Discard an incomplete frame, because no more bytes will arrive."""
        if self._frame is not None:
            self._pool.free(self._frame)
        if self._ordinary is not None:
            self._ordinary.drop()
        self._frame = None
        self._prefix = b""

    def deliver_to(self, handler: FrameHandler, ordinary: OrdinaryFrames | None = None) -> None:
        """Switch to another handler and `ordinary` path. Must not be called in the middle of a frame."""
        self._handler = handler
        self._ordinary = ordinary

    def forget(self) -> None:
        """Ignore all further frames."""
        self._handler = NO_HANDLER
        self._ordinary = None

    def gathering_view(self) -> memoryview | None:
        """Return the buffer for the next bytes of the frame that is being gathered, or None if there is none."""
        ordinary = self._ordinary
        if ordinary is not None and ordinary.left > 0:
            return ordinary.rest_buffer()
        if self._frame is None:
            return None
        if self._room > 0:
            self._frame += _ZEROS[: self._room]
            self._room = 0
        return memoryview(self._frame)[self._filled :]

    def gathered(self, count: int) -> None:
        """Process `count` bytes that were read into `gathering_view()`."""
        ordinary = self._ordinary
        if ordinary is not None and ordinary.left > 0:
            self._take_rest(ordinary, count)
            return
        self.settled = False
        self._filled += count
        self._finish_or_grow()

    def _ordinary_has_begun(self) -> bool:
        return self._ordinary is not None and self._ordinary.left > 0

    def _take_rest(self, ordinary: OrdinaryFrames, count: int) -> None:
        frame = ordinary.take_rest(count)
        self.frames_ended += ordinary.taken
        self.settled = ordinary.settled
        if frame is not None:
            self._handler.on_head(len(frame), bytes(frame[: self._prefix_bytes - _SIZE_BYTES]))
            self.frames_ended += 1
            self._handler.on_frame(frame)

    def _begin(self, data: memoryview, position: int, end: int) -> int:
        """Start a frame whose size and head have arrived. A frame that has arrived completely is gathered at once."""
        start = position + _SIZE_BYTES
        size: int = _SIZE.unpack_from(data, position)[0]
        if size < 0 or size > self._max_frame_bytes:
            self._reject(size, data[position:start])
        self._size = size
        head = bytes(data[start : start + min(size, self._prefix_bytes - _SIZE_BYTES)])
        if self._handler.on_head(size, head) is not _GATHER:
            self._pass_left = _SIZE_BYTES + size
            return position
        if size > end - start:
            self._gather(self._pool.take(size, end - start), head)
            return start + len(head)
        self._handler.on_room(size, size)
        if self.suspended:
            self._frame, self._filled = bytearray(size), 0
            return start
        self.frames_ended += 1
        self._handler.on_frame(bytearray(data[start : start + size]))
        return start + size

    def _collect_prefix(self, data: memoryview, position: int, end: int) -> int:
        """Collect a size and head that arrive in parts, or a frame that is shorter than a head."""
        have = len(self._prefix)
        want = SIZE_BYTES
        if have >= SIZE_BYTES:
            want = min(self._prefix_bytes, SIZE_BYTES + self._size)
        count = min(want - have, end - position)
        self._prefix += bytes(data[position : position + count])
        position += count
        have += count
        if have == SIZE_BYTES:
            self._size = _SIZE.unpack(self._prefix)[0]
            if self._size < 0 or self._size > self._max_frame_bytes:
                self._reject(self._size, self._prefix)
        if have >= SIZE_BYTES and have == min(self._prefix_bytes, SIZE_BYTES + self._size):
            self._prefix_is_there()
        return position

    def _prefix_is_there(self) -> None:
        prefix = self._prefix
        self._prefix = b""
        head = prefix[SIZE_BYTES:]
        if self._handler.on_head(self._size, head) is _GATHER:
            self._gather(self._pool.take(self._size, len(head)), head)
        else:
            self._pass_left = self._size - len(head)
            if self._pass_left == 0:
                self.frames_ended += 1
            self._handler.on_pass(memoryview(prefix))

    def _reject(self, size: int, prefix: bytes | memoryview) -> None:
        reason = f"a frame claims {size} bytes, more than the {self._max_frame_bytes} allowed (limits.max_frame_bytes)"
        if size < 0:
            reason = f"a frame claims a negative size ({size})"
        raise FrameSizeError(reason, size, bytes(prefix))

    def _gather(self, buffer: bytearray, head: bytes) -> None:
        buffer[: len(head)] = head
        self._frame = buffer
        self._filled = len(head)
        self._handler.on_room(len(buffer), self._size)
        self._finish_or_grow()

    def _fill(self, data: memoryview, position: int, end: int) -> int:
        view = self.gathering_view()
        assert view is not None
        count = min(len(view), end - position)
        view[:count] = data[position : position + count]
        view.release()
        self.gathered(count)
        return count

    def _finish_or_grow(self) -> None:
        """Deliver a whole frame, or grow a full buffer. Memory is used only for bytes that have arrived."""
        if self._frame is None or self._filled < len(self._frame):
            return
        if self._filled == self._size:
            frame = self._frame
            self._frame = None
            self.frames_ended += 1
            self._handler.on_frame(frame)
        else:
            self._room = min(max(self._filled, _LEAST_ROOM_BYTES), _MOST_ROOM_BYTES, self._size - self._filled)
            self._handler.on_room(self._room, self._size)


Parts = Sequence[bytes | bytearray | memoryview]
"""The parts of one frame, in order."""


def frame_of(*parts: bytes | bytearray | memoryview) -> bytes:
    """Return a frame that consists of these parts, with its size prefix."""
    return b"".join((size_prefix(parts), *parts))


def size_prefix(parts: Parts) -> bytes:
    """Return the size prefix of these parts."""
    return _SIZE.pack(sum(map(len, parts)))
