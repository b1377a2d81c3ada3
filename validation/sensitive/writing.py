"""Writes a value again while it is read, with strings replaced and lengths adjusted."""

from collections.abc import Callable
from typing import Final

from sluicegate.protocol.records.codecs.decompression_budget import OverLimit, PayloadLimit
from sluicegate.validation.sensitive.paths import FieldPolicy

_PIECE_BYTES: Final = 256 * 1024
_COUNTED_BYTES: Final = 32 * 1024

Around = tuple[bytearray | None, int]
"""The output around a part, and how many bytes of the value it covers."""


class ValueWriter:
    """The output for one value. `names` contains the policies that change bytes.

    Unchanged bytes are copied only when a later byte changes, so an unchanged value produces no output. A part
    (`begin_part`) has an output of its own, because its length is written before it. Replacements and ends of parts
    must be given in order of position. `most_bytes` limits the output together with `beside`, the size of the rest of
    the record's value. A value that is already longer may keep its size.
    """

    def __init__(self, value: bytes, most_bytes: int, worked: Callable[[int], None], beside: int = 0) -> None:
        self.names: set[str] = set()
        self._value = memoryview(value)
        self._limit = most_bytes
        self._most_bytes = max(most_bytes - beside, len(value))
        self._worked = worked
        self._out: bytearray | None = None
        self._copied = 0  # the output contains the value up to here
        self._growth = 0
        self._uncounted = 0

    def replace(self, start: int, end: int, new: bytes, fields: FieldPolicy) -> None:
        """Write `new` instead of the bytes from `start` to `end`. Raises OverLimit."""
        self.names.add(fields.name)
        self._grow(len(new) - (end - start), end)
        if self._copied < start:
            self._put(self._value[self._copied : start])
        self._put(new)
        self._copied = end

    def begin_part(self, start: int) -> Around:
        """Begin the output of a part at `start`. Return the surrounding output, for `end_part`."""
        around = self._out, self._copied
        self._out, self._copied = None, start
        return around

    def end_part(self, around: Around, length_at: int, start: int, end: int, encode: Callable[[int], bytes]) -> None:
        """End a part that spans `start` to `end`. If it has changed, write its new length at `length_at`.

        Raises OverLimit.
        """
        inner = self._out
        if inner is None:
            self._out, self._copied = around
            return
        self._put(self._value[self._copied : end])
        self._out, self._copied = around
        length = encode(len(inner))
        self._grow(len(length) - (start - length_at), end)
        self._put(self._value[self._copied : length_at])
        self._put(length)
        self._put(inner)
        self._copied = end

    def written(self, before: bytes = b"", begin: int = 0) -> bytes | None:
        """Return `before` and the output from `begin` on, or None if nothing has changed. Raises OverLimit."""
        out = self._whole()
        return None if out is None else b"".join((before, memoryview(out)[begin:]))

    def is_same(self, other: "ValueWriter") -> bool:
        """Return whether both outputs for the same value are equal. Raises OverLimit."""
        return self._whole() == other._whole()

    def _whole(self) -> bytearray | None:
        if self._out is not None:
            self._grow(0, len(self._value))
            self._put(self._value[self._copied :])
            self._copied = len(self._value)
            self._worked(len(self._out))
        return self._out

    def _grow(self, size: int, end: int) -> None:
        """Count the growth before allocating memory for it. `end` is the position at which the value continues."""
        self._growth += size
        if end + self._growth > self._most_bytes:
            raise OverLimit(PayloadLimit.WINDOW, self._limit)

    def _put(self, data: bytes | bytearray | memoryview) -> None:
        out = self._out
        if out is None:
            out = self._out = bytearray()
        size = len(data)
        if size <= _COUNTED_BYTES:
            out += data
            self._uncounted += size
            if self._uncounted > _COUNTED_BYTES:
                self._worked(self._uncounted)
                self._uncounted = 0
            return
        view = memoryview(data)
        for at in range(0, size, _PIECE_BYTES):
            out += view[at : at + _PIECE_BYTES]
            self._worked(_PIECE_BYTES)
