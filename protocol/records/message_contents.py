"""Extracts the contents of magic 0 and 1 messages, one at a time, as `RecordContents` does for magic 2.

It requires good sets that were validated before: several uncompressed messages, or one wrapper. The messages have no
headers, and those of magic 0 have no timestamp (-1).
"""

from sluicegate.protocol.records.codecs.decompression import DecompressedStream
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.protocol.records.contents import WantedParts
from sluicegate.protocol.records.message_set import Message, MessageStream
from sluicegate.protocol.records.record_batch import next_batch_end

_MESSAGE_WORK = 128
_SIZE_BYTES = 4


class MessageContents:
    """A walk over the messages in an uncompressed set, or in a wrapper's `pieces`.

    Its attributes are those of the current message.
    """

    def __init__(
        self, records: memoryview, pieces: DecompressedStream | None, wanted: WantedParts, budget: DecompressionBudget
    ) -> None:
        self._records = records
        self._stream = MessageStream(pieces, wanted.window_bytes, budget) if pieces is not None else None
        self._message = self._stream.message if self._stream is not None else Message()
        self._next = 0
        self._wanted = wanted
        self._budget = budget
        self.index = -1
        self.timestamp = -1
        self.key: bytes | None = None
        self.value: bytes | None = None
        self.headers: tuple[tuple[bytes, bytes | None], ...] = ()
        self.key_size = -1
        self.value_size = -1
        self.header_count = self.header_bytes = 0

    def read_next(self) -> bool:
        """Read the next message. Return whether there is one. Raises OverLimit and the errors of `budget`."""
        message = self._message
        if self._stream is not None:
            if not self._stream.read_next():
                return False
            data = self._stream.view
        else:
            data = self._records
            end = next_batch_end(data, self._next)
            if end is None:
                return False
            message.read(data, self._next, end)
            self._next = end
        self.index += 1
        self.timestamp = message.timestamp
        self.key_size, self.value_size = message.key_size, message.value_size
        value_at = message.value_at
        key_end = value_at - _SIZE_BYTES
        if self._wanted.key:
            self.key = self._taken(data, key_end - max(self.key_size, 0), self.key_size)
        if self._wanted.value:
            self.value = self._taken(data, value_at, self.value_size)
        self._budget.worked(_MESSAGE_WORK + message.end - message.start)
        return True

    def _taken(self, data: memoryview, at: int, size: int) -> bytes | None:
        if size < 0:
            return None
        self._budget.check_held(size)
        return bytes(data[at : at + size])
