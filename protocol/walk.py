"""Provides the base of readers without construct. It walks over a message's bytes without passing the end.

A subclass walks one message. Counts are checked before memory is allocated: array items against the remaining bytes and
`elements_left`, and tagged fields against `tags_left`, both for the whole message. Compiled with the types in walk.pxd
if a C compiler is installed. `data` is then a C pointer without bounds checks, so call `skip` before reading.
"""

from sluicegate.protocol.errors import MalformedMessage

MAX_TAGGED_FIELDS = 10_000
MAX_STRING_BYTES = 32_767
"""The maximum of an int16 length. Kafka's own classes apply it to compact strings, too."""

_LONGEST_STRING = MAX_STRING_BYTES  # typed in the .pxd, which hides a name from other modules
_INT16_BYTES = 2
_INT32_BYTES = 4
_MAX_VARINT_SHIFT = 28
# A named constant, because Cython creates an object for a literal this large.
_SIGN_16 = 0x8000
_SIGN_32 = 0x8000_0000
_LOW_32 = 0xFFFF_FFFF


class Walk:
    """A position in `data` that only moves forward. All methods raise MalformedMessage."""

    source: bytes | bytearray
    data: bytes | bytearray
    version: int
    flexible: bool
    position: int
    end: int
    elements_left: int
    tags_left: int

    def begin(
        self, data: bytes | bytearray, version: int, flexible: bool, position: int, max_elements: int, max_tags: int
    ) -> None:
        """Start at `position` in `data`, which must not change during the walk."""
        self.source = data  # keeps the object alive in compiled code
        self.data = data
        self.version = version
        self.flexible = flexible
        self.position = position
        self.end = len(data)
        self.elements_left = max_elements
        self.tags_left = max_tags

    def skip(self, size: int) -> None:
        if size > self.end - self.position:
            raise MalformedMessage("it ends too early")
        self.position += size

    def int16(self) -> int:
        at = self.position
        self.skip(_INT16_BYTES)
        value = self.data[at] << 8 | self.data[at + 1]
        return (value ^ _SIGN_16) - _SIGN_16

    def int32(self) -> int:
        at = self.position
        self.skip(_INT32_BYTES)
        value = self.data[at]  # assigned to a wide variable first, because a C int would overflow
        value = value << 24 | self.data[at + 1] << 16 | self.data[at + 2] << 8 | self.data[at + 3]
        return (value ^ _SIGN_32) - _SIGN_32

    def int64(self) -> int:
        high = self.int32()
        low = self.int32() & _LOW_32
        return high << 32 | low

    def unsigned_varint(self) -> int:
        value = 0
        shift = 0
        while shift <= _MAX_VARINT_SHIFT:
            at = self.position
            self.skip(1)
            byte = self.data[at]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise MalformedMessage("a varint is longer than five bytes")

    def length(self, fixed_bytes: int) -> int:
        """Read a length or count; -1 means null. `fixed_bytes` is its size in versions without varints."""
        if self.flexible:
            length = self.unsigned_varint() - 1
        elif fixed_bytes == _INT16_BYTES:
            length = self.int16()
        else:
            length = self.int32()
        if length < -1 or length > self.end - self.position:
            raise MalformedMessage(f"a length of {length} runs over its end")
        return length

    def count(self) -> int:
        """Read the number of items in an array, and count them against `elements_left`."""
        count = self.length(_INT32_BYTES)
        if count < 0:
            raise MalformedMessage("an array is null")
        if count > self.elements_left:
            self.reject_count(count)
        self.elements_left -= count
        return count

    def reject_count(self, count: int) -> None:
        raise MalformedMessage(f"{count} more elements than the {self.elements_left} that are left")

    def string(self) -> str | None:
        length = self.length(_INT16_BYTES)
        if length < 0:
            return None
        if length > _LONGEST_STRING:
            raise MalformedMessage(f"a string of {length} bytes, more than {MAX_STRING_BYTES}")
        start = self.position
        self.skip(length)
        try:
            return self.data[start : self.position].decode("utf-8")
        except UnicodeDecodeError as error:
            raise MalformedMessage("a string is not UTF-8") from error

    def required_string(self) -> str:
        text = self.string()
        if text is None:
            raise MalformedMessage("a string is null")
        return text

    def bytes_of(self, size: int) -> bytes:
        start = self.position
        self.skip(size)
        return bytes(self.data[start : self.position])

    def skip_string(self) -> None:
        length = self.length(_INT16_BYTES)
        if length > 0:
            self.skip(length)

    def skip_bytes(self) -> None:
        length = self.length(_INT32_BYTES)
        if length > 0:
            self.skip(length)

    def skip_int32s(self) -> None:
        """Skip an array of int32."""
        length = self.length(_INT32_BYTES)
        if length > 0:
            self.skip(length * _INT32_BYTES)

    def tag_count(self) -> int:
        """Read the number of tagged fields, and count them against `tags_left`."""
        count = self.unsigned_varint()
        if count > self.tags_left:
            raise MalformedMessage(f"{count} more tagged fields than the {self.tags_left} that are left")
        self.tags_left -= count
        return count

    def skip_tags(self) -> None:
        left = self.tag_count() if self.flexible else 0
        while left > 0:
            self.unsigned_varint()
            self.skip(self.unsigned_varint())
            left -= 1

    def expect_end(self) -> None:
        if self.position != self.end:
            raise MalformedMessage(f"{self.end - self.position} bytes after its end")


def tagged_fields(data: bytes | bytearray, position: int) -> list[tuple[int, int, int, int]]:
    """Return each tagged field from `position` to the end as (tag, start, start of the value, end).

    Raises MalformedMessage, also for bytes after the last field.
    """
    walk = Walk()
    walk.begin(data, 0, True, position, 0, MAX_TAGGED_FIELDS)
    found: list[tuple[int, int, int, int]] = []
    left = walk.tag_count()
    while left > 0:
        start = walk.position
        tag = walk.unsigned_varint()
        size = walk.unsigned_varint()
        value_at = walk.position
        walk.skip(size)
        found.append((tag, start, value_at, walk.position))
        left -= 1
    walk.expect_end()
    return found
