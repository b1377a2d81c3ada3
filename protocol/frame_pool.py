"""Reuses the buffers of gathered frames. Allocating and clearing a buffer costs more than reading a large frame.

Buffers are kept by size class (powers of two), so that a buffer seldom has to grow for its next frame. The pool is
bounded. It contains only memory that a frame has actually filled.
"""

from collections.abc import Callable
from functools import partial

_SMALLEST_POOLED = 16 * 1024
_LARGEST_POOLED = 4 << 20
_SMALLEST_MADE = 4 * 1024
_MOST_KEPT_BYTES = 8 << 20


# Freeing more than this at once would block the event loop for too long when many frames are dropped.
_FREE_LATER_BYTES = 1 << 20

Later = Callable[[Callable[[], None]], object]


def _at_once(step: Callable[[], None]) -> None:
    step()


class FramePool:
    """The pool for one event loop. `later` schedules a callback after other work."""

    def __init__(self, later: Later = _at_once) -> None:
        self._later = later
        self._kept: dict[int, list[bytearray]] = {}
        self._kept_bytes = 0

    def take(self, size: int, at_hand: int) -> bytearray:
        """Return a buffer for a frame that claims `size` bytes. `at_hand` bytes of it have arrived.

        A reused buffer has the claimed size. A new buffer is not much larger than the bytes that have arrived, because
        memory is never allocated for a mere claim. The contents are arbitrary.
        """
        kept = self._kept.get(size.bit_length())
        if kept:
            buffer = kept.pop()
            self._kept_bytes -= len(buffer)
            if len(buffer) > size:
                del buffer[size:]
            else:
                buffer.extend(bytes(size - len(buffer)))
            return buffer
        return bytearray(min(size, max(_SMALLEST_MADE, 2 * at_hand)))

    def free(self, buffer: bytearray) -> None:
        """Free an incomplete frame's buffer, half of it at a time."""
        if len(buffer) > _FREE_LATER_BYTES:
            self._later(partial(self._halve, buffer))

    def _halve(self, buffer: bytearray) -> None:
        try:
            del buffer[len(buffer) // 2 :]
        except BufferError:  # a view still exists; the memory is freed with it
            return
        self.free(buffer)

    def recycle(self, buffer: bytearray) -> None:
        """Take back the buffer of a frame that is no longer used."""
        size = len(buffer)
        if not _SMALLEST_POOLED <= size <= _LARGEST_POOLED or self._kept_bytes + size > _MOST_KEPT_BYTES:
            return
        try:
            del buffer[size - 1 :]  # raises BufferError while a view of it exists
        except BufferError:
            return
        self._kept.setdefault(size.bit_length(), []).append(buffer)
        self._kept_bytes += size - 1
