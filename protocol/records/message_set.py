"""Reads messages of magic 0 and 1 (KIP-32), on their own or within a compressed wrapper.

offset int64 | size int32 | crc uint32 | magic int8 | attributes int8 | timestamp int64 (magic 1) | key | value

Key and value have an int32 size, which is -1 for null. The CRC32 covers everything from the magic on. The value of a
compressed wrapper contains messages, which are read one at a time from the pieces of its payload. Messages of magic 0
have no timestamps; those of magic 1 are in ms.
"""

from isal.isal_zlib import crc32

from sluicegate.protocol.records.codecs.codec import Piece
from sluicegate.protocol.records.codecs.decompression import DecompressedStream
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, OverLimit, PayloadLimit
from sluicegate.protocol.records.record_batch import NO_TIMESTAMP

OVERHEAD_BYTES = 12
_OVERHEAD_BYTES = OVERHEAD_BYTES
_MIN_MESSAGE_BYTES = 14
_NO_TIMESTAMP = NO_TIMESTAMP
_SIZE_AT = 8
_CRC_AT = 12
_MAGIC_AT = 16
_ATTRIBUTES_AT = 17
_BEHIND_ATTRIBUTES = 18
_TIMESTAMP_BYTES = 8
_SIZE_BYTES = 4
# The minimum that a message in a stream counts, because reading it costs more than its bytes.
_LEAST_BYTES = 128
_CODEC_MASK = 0x07
_LOG_APPEND_TIME = 0x08
# A named constant, because Cython creates an object for a literal this large.
_SIGN_32 = 0x8000_0000
_LOW_32 = 0xFFFF_FFFF


class BrokenMessage(Exception):
    """Raised if the sizes in a message do not fit its bytes."""


class Message:
    """A message at data[start:end], including its offset and size. Sizes are -1 for null.

    `codec_id` is 0 for an uncompressed message, otherwise the codec of the messages in its value. `is_log_append_time`
    is whether the message claims a broker's time (magic 1). `read` can be called again, so that a walk over many
    messages allocates only one object.
    """

    def __init__(self) -> None:
        self.start = 0
        self.end = 0
        self.offset = 0
        self.crc = 0
        self.magic = 0
        self.attributes = 0
        self.codec_id = 0
        self.is_log_append_time = False
        self.timestamp = _NO_TIMESTAMP
        self.key_size = -1
        self.value_at = 0
        self.value_size = -1

    def read(self, data: memoryview, start: int, end: int) -> None:
        """Read the message at data[start:end]. Raises BrokenMessage."""
        if end - start < _BEHIND_ATTRIBUTES:
            raise BrokenMessage("a message ends too early")
        self.start = start
        self.end = end
        self.offset = _int64_at(data, start)
        self.crc = _int32_at(data, start + _CRC_AT) & _LOW_32
        self.magic = data[start + _MAGIC_AT]
        self.attributes = data[start + _ATTRIBUTES_AT]
        self.codec_id = self.attributes & _CODEC_MASK
        self.is_log_append_time = self.magic > 0 and self.attributes & _LOG_APPEND_TIME != 0
        self.timestamp = _NO_TIMESTAMP
        position = start + _BEHIND_ATTRIBUTES
        if self.magic > 0:
            if end - position < _TIMESTAMP_BYTES:
                raise BrokenMessage("a message ends too early")
            self.timestamp = _int64_at(data, position)
            position += _TIMESTAMP_BYTES
        self.key_size = _size_at(data, position, end)
        position += _SIZE_BYTES + max(self.key_size, 0)
        self.value_size = _size_at(data, position, end)
        self.value_at = position + _SIZE_BYTES

    def copy(self) -> "Message":
        """Return a copy that does not change when `read` is called on this object."""
        made = Message()
        made.start, made.end = self.start, self.end
        made.offset, made.crc, made.magic, made.attributes = self.offset, self.crc, self.magic, self.attributes
        made.codec_id, made.is_log_append_time = self.codec_id, self.is_log_append_time
        made.timestamp, made.key_size = self.timestamp, self.key_size
        made.value_at, made.value_size = self.value_at, self.value_size
        return made

    @property
    def size(self) -> int:
        """The value of the size field, which counts the bytes that follow it."""
        return self.end - self.start - _OVERHEAD_BYTES


def read_message(data: memoryview, start: int, end: int) -> Message:
    """Return the message at data[start:end], which includes its offset and size. Raises BrokenMessage."""
    message = Message()
    message.read(data, start, end)
    return message


def has_crc(view: memoryview, data: memoryview, start: int, end: int) -> bool:
    """Return whether the CRC32 of the message at data[start:end] is correct. `view` must be a view of `data`."""
    if end - start < _OVERHEAD_BYTES + _MIN_MESSAGE_BYTES:
        return False
    computed: int = crc32(view[start + _MAGIC_AT : end])
    return computed == _int32_at(data, start + _CRC_AT) & _LOW_32


def inner_messages(data: memoryview) -> list[Message]:
    """Return the messages in a decompressed wrapper, without a truncated message at the end. Raises BrokenMessage."""
    messages, start = [], 0
    while len(data) - start >= _OVERHEAD_BYTES:
        end = start + _OVERHEAD_BYTES + size_of_message(data, start)
        if end > len(data):
            break
        messages.append(read_message(data, start, end))
        start = end
    return messages


def size_of_message(data: memoryview, start: int) -> int:
    """Return the value of a message's size field. Raises BrokenMessage if it is smaller than a header."""
    size = _int32_at(data, start + _SIZE_AT)
    if size < _MIN_MESSAGE_BYTES:
        raise BrokenMessage(f"a message of {size} bytes is shorter than its header")
    return size


class MessageStream:
    """A walk over the inner messages. `message` is the current one and is valid until the next call.

    It keeps one piece in memory, and one message of at most `window_bytes` that spans several pieces.
    """

    def __init__(self, pieces: DecompressedStream, window_bytes: int, budget: DecompressionBudget) -> None:
        self.message = Message()
        self._pieces = pieces
        self._window_bytes = window_bytes
        self._budget = budget
        self._rest: Piece | None = None
        self._take(b"")

    def read_next(self) -> bool:
        """Read the next whole message. Return whether there is one. Raises BrokenMessage, OverLimit and Abandoned."""
        if self._end - self._position < _OVERHEAD_BYTES and not self._gather(_OVERHEAD_BYTES):
            return False
        size = _OVERHEAD_BYTES + size_of_message(self._data, self._position)
        if self._end - self._position < size and not self._gather(size):
            return False
        self.message.read(self._data, self._position, self._position + size)
        self._position += size
        if size < _LEAST_BYTES:
            self._budget.spend(_LEAST_BYTES - size)
        return True

    @property
    def view(self) -> memoryview:
        """The data to which the current message's positions refer."""
        return self._view

    def has_crc(self) -> bool:
        """Return whether the current message's CRC32 is correct."""
        return has_crc(self._view, self._data, self.message.start, self.message.end)

    def _gather(self, size: int) -> bool:
        """Make the next `size` bytes contiguous. Return False if the payload ends before them."""
        if self._position == self._end:
            piece = self._following()
            if piece is None:
                return False
            self._take(piece)
            if len(piece) >= size:
                return True
        gathered = bytearray(self._view[self._position : self._end])
        while len(gathered) < size:
            if len(gathered) > self._window_bytes:
                raise OverLimit(PayloadLimit.WINDOW, self._window_bytes)
            piece = self._following()
            if piece is None:
                return False
            needed = size - len(gathered)
            gathered += piece[:needed]
            if len(piece) > needed:
                self._rest = piece[needed:]
        self._take(memoryview(gathered))
        return True

    def _following(self) -> Piece | None:
        """Return the rest of the current piece, or the next piece."""
        if self._rest is None:
            return self._pieces.more()
        piece, self._rest = self._rest, None
        return piece

    def _take(self, piece: Piece) -> None:
        self._view = piece if isinstance(piece, memoryview) else memoryview(piece)
        self._data = self._view
        self._position = 0
        self._end = len(piece)


def _size_at(data: memoryview, position: int, end: int) -> int:
    """Return the size of a key or value, or -1 for null. Raises BrokenMessage."""
    if end - position < _SIZE_BYTES:
        raise BrokenMessage("a message ends too early")
    size = _int32_at(data, position)
    if size > end - position - _SIZE_BYTES:
        raise BrokenMessage("a key or value is longer than its message")
    return max(size, -1)


def _int32_at(data: memoryview, at: int) -> int:
    value = data[at]  # assigned to a wide variable first, because a C int would overflow
    value = value << 24 | data[at + 1] << 16 | data[at + 2] << 8 | data[at + 3]
    return (value ^ _SIGN_32) - _SIGN_32


def _int64_at(data: memoryview, at: int) -> int:
    high = _int32_at(data, at)
    low = _int32_at(data, at + 4) & _LOW_32
    return high << 32 | low
