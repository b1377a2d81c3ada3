"""Cuts a byte stream into Kafka's size-prefixed frames. No sockets: bytes go in, a handler is told what they are.

A frame is an int32 size (bytes, big-endian) and that many bytes. As soon as its first bytes are there the handler
says whether the frame is to be gathered whole or may pass on as it arrives; so an opaque frame of any size is never
held, and one that is gathered is read straight into its own buffer (`gathering_view`). Compiled with the types in
framing.pxd where a C compiler was at hand.
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
    """What to do with a frame whose head is known."""

    STREAM = "hand its bytes on as they arrive"
    GATHER = "collect it whole"


_GATHER = Disposition.GATHER
_LEAST_ROOM_BYTES = 4 * 1024
# More at once keeps others waiting while it is read.
_MOST_ROOM_BYTES = 512 * 1024
_ZEROS = memoryview(bytes(_MOST_ROOM_BYTES))
_NOWHERE = memoryview(bytearray())


class FrameHandler(Protocol):
    """Who is told about frames. Raising stops the reader where it stands."""

    def on_head(self, size: int, head: bytes) -> Disposition:
        """A frame of `size` bytes starts with `head` (up to the reader's head size, size prefix not included)."""

    def on_pass(self, data: memoryview) -> None:
        """The next bytes of frames that pass, size prefixes included; valid only during the call."""

    def on_room(self, more: int, size: int) -> None:
        """`more` bytes are about to be held of a frame of `size`; who has no memory for them suspends the reader."""

    def on_frame(self, frame: bytearray) -> None:
        """A gathered frame, without its size prefix; the handler may keep it, or give it back to the pool."""


class OrdinaryFrames:
    """The way of frames that need nothing but to be passed on; asked before a FrameHandler is.

    `taken`: how many frames the last call took; `settled`: whether nothing is left to do about them; `left`: how many
    bytes are still to come of a frame whose beginning it keeps, of those that a handler would gather.
    """

    def __init__(self) -> None:
        self.taken = 0
        self.settled = False
        self.left = 0

    def take(self, data: memoryview, position: int, end: int) -> int:
        """Pass on whole frames from data[position] on, and keep the beginning of the last; returns where the first
        begins that a handler has to see.
        """
        self.taken = 0
        self.settled = False
        return position

    def room(self) -> memoryview:
        """Where those bytes that are `left` are read to."""
        return _NOWHERE

    def came(self, count: int) -> bytearray | None:
        """So many bytes were read there. The frame, without its size, if it is whole and a handler has to see it."""
        return None

    def drop(self) -> None:
        """No more will come."""
        self.left = 0


class _Nobody:
    """Takes the frames of a reader without a handler."""

    def on_head(self, size: int, head: bytes) -> Disposition:
        return Disposition.STREAM

    def on_pass(self, data: memoryview) -> None: ...

    def on_room(self, more: int, size: int) -> None: ...

    def on_frame(self, frame: bytearray) -> None: ...


NOBODY = _Nobody()


class FrameReader:
    """One direction of one connection.

    `head_bytes`: how much of a frame the handler wants to see before it decides. `max_frame_bytes`: larger claims
    raise FrameSizeError. `ordinary` takes what it can before the handler sees it. The handler may set `suspended` in a
    callback; the reader then stops behind that frame, or where it is in one that is being gathered. `frames_ended`
    counts whole frames, of both kinds. `settled`: all that was received last was ordinary, and nothing is left to do.
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
        """Whether a frame has begun and not ended."""
        return self._pass_left > 0 or self.is_gathering or len(self._prefix) > 0

    @property
    def mid_pass(self) -> bool:
        """Whether a frame that passes was handed on in part."""
        return self._pass_left > 0

    @property
    def is_gathering(self) -> bool:
        """Whether a frame is held in part."""
        return self._frame is not None or self._ordinary_has_begun()

    def begun(self) -> memoryview | None:
        """What has come of a frame that is being gathered, without its size prefix; None when none is."""
        return None if self._frame is None else memoryview(self._frame)[: self._filled]

    def receive(self, data: memoryview, end: int) -> int:
        """Take data[:end] off the wire; returns how many were used (fewer only when `suspended` was set)."""
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
        """No more will come: let go of what came of a frame."""
        if self._frame is not None:
            self._pool.let_go(self._frame)
        if self._ordinary is not None:
            self._ordinary.drop()
        self._frame = None
        self._prefix = b""

    def deliver_to(self, handler: FrameHandler, ordinary: OrdinaryFrames | None = None) -> None:
        """Hand frames to another handler, after `ordinary` has taken what it can. Not in the middle of a frame."""
        self._handler = handler
        self._ordinary = ordinary

    def forget(self) -> None:
        """Hand frames to no handler any more."""
        self._handler = NOBODY
        self._ordinary = None

    def gathering_view(self) -> memoryview | None:
        """Where the next bytes of a gathered frame may be read to directly; None when no frame is being gathered."""
        ordinary = self._ordinary
        if ordinary is not None and ordinary.left > 0:
            return ordinary.room()
        if self._frame is None:
            return None
        if self._room > 0:
            self._frame += _ZEROS[: self._room]
            self._room = 0
        return memoryview(self._frame)[self._filled :]

    def gathered(self, count: int) -> None:
        """`count` bytes were read into `gathering_view()`."""
        ordinary = self._ordinary
        if ordinary is not None and ordinary.left > 0:
            self._came(ordinary, count)
            return
        self.settled = False
        self._filled += count
        self._finish_or_grow()

    def _ordinary_has_begun(self) -> bool:
        return self._ordinary is not None and self._ordinary.left > 0

    def _came(self, ordinary: OrdinaryFrames, count: int) -> None:
        frame = ordinary.came(count)
        self.frames_ended += ordinary.taken
        self.settled = ordinary.settled
        if frame is not None:
            self._handler.on_head(len(frame), bytes(frame[: self._prefix_bytes - _SIZE_BYTES]))
            self.frames_ended += 1
            self._handler.on_frame(frame)

    def _begin(self, data: memoryview, position: int, end: int) -> int:
        """A frame whose size and head are there; one that is to be gathered and is there whole is taken at once."""
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
        """Size and head arrive in pieces, or the frame is shorter than a head."""
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
        """Hand a whole frame on; ask for more room for one that has filled what it had: only bytes that come count."""
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
"""What one frame is put together from, in its order."""


def frame_of(*parts: bytes | bytearray | memoryview) -> bytes:
    """One frame of these parts, size prefix first."""
    return b"".join((size_prefix(parts), *parts))


def size_prefix(parts: Parts) -> bytes:
    """What stands before these parts on the wire."""
    return _SIZE.pack(sum(map(len, parts)))
