"""Finds the ends of frames in a Kafka stream that arrives in arbitrary pieces."""


class FrameEnds:
    """Tracks one direction of one connection."""

    def __init__(self) -> None:
        self._size = bytearray()
        self._left = 0

    def frame_ends_in(self, data: bytes) -> set[int]:
        """Return the offsets in the next piece at which a frame ends."""
        ends, at = set(), 0
        while at < len(data):
            if self._left == 0:
                taken = data[at : at + 4 - len(self._size)]
                self._size += taken
                at += len(taken)
                if len(self._size) == 4:
                    self._left = int.from_bytes(self._size, "big")
                    self._size.clear()
                    if self._left == 0:
                        ends.add(at)
            else:
                step = min(self._left, len(data) - at)
                self._left -= step
                at += step
                if self._left == 0:
                    ends.add(at)
        return ends
