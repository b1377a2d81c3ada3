"""Messages of magic 0 and 1 (KIP-32), alone or within a compressed wrapper.

    offset int64 | size int32 | crc uint32 | magic int8 | attributes int8 | timestamp int64 (magic 1) | key | value

Key and value have an int32 size, -1 for null. The CRC32 covers everything from the magic on. A compressed wrapper
holds messages in its value; magic 0 has no time, magic 1 keeps it in ms.
"""

from dataclasses import dataclass
from struct import Struct
from struct import error as StructError
from zlib import crc32

_OVERHEAD = Struct(">qi")
_CRC_MAGIC_ATTRIBUTES = Struct(">IBB")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_CODEC_MASK = 0x07
_LOG_APPEND_TIME = 0x08
_MIN_MESSAGE_BYTES = 14
_CRC_COVERS_FROM = 4
NO_TIMESTAMP = -1


class BrokenMessage(Exception):
    """A message whose sizes do not fit its bytes."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message; `value` is a view into the set (None for null), sizes are -1 for null."""

    offset: int
    crc: int
    computed_crc: int
    magic: int
    attributes: int
    timestamp: int
    key_size: int
    value: memoryview | None
    size: int

    @property
    def codec_id(self) -> int:
        """0 for a plain message, else the codec of the messages in its value."""
        return self.attributes & _CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        """Whether it claims a broker's time (magic 1)."""
        return self.magic > 0 and bool(self.attributes & _LOG_APPEND_TIME)

    @property
    def has_valid_crc(self) -> bool:
        """Whether it is long enough to be one and its CRC32 is right."""
        return self.size >= _MIN_MESSAGE_BYTES and self.crc == self.computed_crc


def read_message(data: memoryview, start: int, end: int) -> Message:
    """The message at data[start:end], its offset and size included. Raises BrokenMessage."""
    try:
        offset, _size = _OVERHEAD.unpack_from(data, start)
        body = start + _OVERHEAD.size
        crc, magic, attributes = _CRC_MAGIC_ATTRIBUTES.unpack_from(data, body)
        position = body + _CRC_MAGIC_ATTRIBUTES.size
        timestamp = NO_TIMESTAMP
        if magic > 0:
            (timestamp,) = _INT64.unpack_from(data, position)
            position += _INT64.size
        key_size, position = _sized(data, position, end)
        value_size, value_end = _sized(data, position, end)
    except StructError as error:
        raise BrokenMessage("a message ends too early") from error
    value = None if value_size < 0 else data[value_end - value_size : value_end]
    computed = crc32(data[body + _CRC_COVERS_FROM : end])
    return Message(offset, crc, computed, magic, attributes, timestamp, key_size, value, end - body)


def is_valid_message(data: memoryview, start: int, end: int) -> bool:
    """Whether the message at data[start:end] has a header's length and its CRC32 is right, whatever is in it."""
    body = start + _OVERHEAD.size
    if end - body < _MIN_MESSAGE_BYTES:
        return False
    crc, _magic, _attributes = _CRC_MAGIC_ATTRIBUTES.unpack_from(data, body)
    return bool(crc == crc32(data[body + _CRC_COVERS_FROM : end]))


def inner_messages(data: memoryview) -> list[Message]:
    """The messages of a decompressed wrapper; one that is cut at the end is left out. Raises BrokenMessage."""
    messages, start = [], 0
    while len(data) - start >= _OVERHEAD.size:
        _offset, size = _OVERHEAD.unpack_from(data, start)
        if size < _MIN_MESSAGE_BYTES:
            raise BrokenMessage(f"a message of {size} bytes is shorter than its header")
        end = start + _OVERHEAD.size + size
        if end > len(data):
            break
        messages.append(read_message(data, start, end))
        start = end
    return messages


def _sized(data: memoryview, position: int, end: int) -> tuple[int, int]:
    (size,) = _INT32.unpack_from(data, position)
    position += _INT32.size
    if size > end - position:
        raise BrokenMessage("a key or value is longer than its message")
    return size, position + max(size, 0)
