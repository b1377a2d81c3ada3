"""The buffer that payloads are decompressed into: reused from batch to batch, bounded in what it takes and keeps."""

# What is kept between batches: most batches stay below this, and a process has a few such buffers.
_KEPT_BYTES = 4 << 20


class OverLimit(Exception):
    """More came out than is allowed."""


class PlainBuffer:
    """Collects up to `limit` bytes of one payload (`begin`), until the next one overwrites them."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._view = memoryview(self._buffer)
        self._limit = 0
        self.filled = 0

    def begin(self, limit: int) -> None:
        """A new payload, of at most `limit` bytes."""
        self._limit = limit
        self.filled = 0
        if len(self._buffer) > _KEPT_BYTES:
            self._replace(bytearray())

    def room(self, size: int) -> memoryview:
        """Where at least `size` bytes may be written, to be counted with `wrote`."""
        if len(self._buffer) - self.filled < size:
            larger = bytearray(max(self.filled + size, 2 * len(self._buffer)))
            larger[: self.filled] = self._view[: self.filled]
            self._replace(larger)
        return self._view[self.filled :]

    def step(self, most: int) -> int:
        """How much to ask for next, up to `most`; one byte more than is allowed, so that too much is noticed."""
        return min(most, self._limit - self.filled + 1)

    def wrote(self, size: int) -> None:
        """`size` bytes were written into `room`. Raises OverLimit."""
        self.filled += size
        if self.filled > self._limit:
            self.filled = self._limit
            raise OverLimit

    def add(self, piece: bytes | memoryview) -> None:
        """Bytes that came out somewhere else. Raises OverLimit."""
        self.check_claim(len(piece))
        self.room(len(piece))[: len(piece)] = piece
        self.wrote(len(piece))

    def check_claim(self, size: int) -> None:
        """A block states its size before it is decompressed: refuse before making room. Raises OverLimit."""
        if size > self._limit - self.filled:
            raise OverLimit

    def contents(self) -> memoryview:
        """What was collected; valid until the next `begin`."""
        return self._view[: self.filled]

    def _replace(self, buffer: bytearray) -> None:
        self._buffer = buffer
        self._view = memoryview(buffer)
