"""The buffer that payloads are decompressed into: reused from batch to batch, and given back where it grew large."""

# What is kept between batches: most batches stay below this, and a process has a few such buffers.
_KEPT_BYTES = 4 << 20


class PlainBuffer:
    """Room for plain bytes, until the next that asks for room overwrites them."""

    def __init__(self) -> None:
        self._view = memoryview(bytearray())

    def room(self, size: int, filled: int = 0) -> memoryview:
        """At least `size` bytes to write to; the first `filled` stay as they are when room has to be made."""
        if len(self._view) < size:
            larger = bytearray(max(size, 2 * filled))
            larger[:filled] = self._view[:filled]
            self._view = memoryview(larger)
        return self._view

    def give_back(self) -> None:
        """Keep no more than between batches is reasonable."""
        if len(self._view) > _KEPT_BYTES:
            self._view = memoryview(bytearray())
