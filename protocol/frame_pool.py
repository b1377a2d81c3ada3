"""Buffers for gathered frames, used again: making and clearing one for each large frame costs more than reading it.

Kept by size class (powers of two), so that a buffer seldom has to grow for its next frame; what is kept is bounded, and
it is only memory that some frame has really filled.
"""

from collections.abc import Callable
from functools import partial

_SMALLEST_POOLED = 16 * 1024
_LARGEST_POOLED = 4 << 20
_SMALLEST_MADE = 4 * 1024
_MOST_KEPT_BYTES = 8 << 20


# Giving the system back more than this takes longer than others should wait when many frames are given up at once.
_LET_GO_LATER = 1 << 20

Later = Callable[[Callable[[], None]], object]


def _at_once(step: Callable[[], None]) -> None:
    step()


class FramePool:
    """One for each event loop. `later` runs something when others have had their turn."""

    def __init__(self, later: Later = _at_once) -> None:
        self._later = later
        self._kept: dict[int, list[bytearray]] = {}
        self._kept_bytes = 0

    def take(self, size: int, at_hand: int) -> bytearray:
        """A buffer for a frame that claims `size` bytes, of which `at_hand` have come.

        As long as it claims where one is kept, else not much longer than what has come: a claim is worth no memory.

        Its contents are whatever they are.
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

    def let_go(self, buffer: bytearray) -> None:
        """What came of a frame whose rest will never come: its memory goes back by halves."""
        if len(buffer) > _LET_GO_LATER:
            self._later(partial(self._halve, buffer))

    def _halve(self, buffer: bytearray) -> None:
        try:
            del buffer[len(buffer) // 2 :]
        except BufferError:  # somebody still looks at it; it goes when they have
            return
        self.let_go(buffer)

    def give_back(self, buffer: bytearray) -> None:
        """A frame that nobody will look at any more."""
        size = len(buffer)
        if not _SMALLEST_POOLED <= size <= _LARGEST_POOLED or self._kept_bytes + size > _MOST_KEPT_BYTES:
            return
        try:
            del buffer[size - 1 :]  # cannot be done while somebody still has a view of it
        except BufferError:
            return
        self._kept.setdefault(size.bit_length(), []).append(buffer)
        self._kept_bytes += size - 1
