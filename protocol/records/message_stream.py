"""The messages of a compressed wrapper (magic 0 and 1), one after the other out of the pieces of its payload."""

from sluicegate.protocol.records.codecs.codec import Piece
from sluicegate.protocol.records.codecs.decompression import Pieces
from sluicegate.protocol.records.codecs.decompression_budget import Allowance, Bound, OverLimit
from sluicegate.protocol.records.message_set import OVERHEAD_BYTES, Message, has_crc, size_of_message

_OVERHEAD_BYTES = OVERHEAD_BYTES
# What a message counts at least: looking at it costs more than its bytes.
_LEAST_BYTES = 128


class MessageStream:
    """Walks over the inner messages; `message` is the current one, to be read before the walk goes on.

    Holds one piece and one message that runs over its end, which may have `window_bytes`.
    """

    def __init__(self, pieces: Pieces, window_bytes: int, allowance: Allowance) -> None:
        self.message = Message()
        self._pieces = pieces
        self._window_bytes = window_bytes
        self._allowance = allowance
        self._rest: Piece | None = None
        self._take(b"")

    def read_next(self) -> bool:
        """Whether there is another, whole one. Raises BrokenMessage, OverLimit and Abandoned."""
        if self._end - self._position < _OVERHEAD_BYTES and not self._gather(_OVERHEAD_BYTES):
            return False
        size = _OVERHEAD_BYTES + size_of_message(self._data, self._position)
        if self._end - self._position < size and not self._gather(size):
            return False
        self.message.read(self._data, self._position, self._position + size)
        self._position += size
        if size < _LEAST_BYTES:
            self._allowance.spend(_LEAST_BYTES - size)
        return True

    @property
    def view(self) -> memoryview:
        """What the current message's places are in."""
        return self._view

    def has_crc(self) -> bool:
        """Whether the CRC32 of the current message is right."""
        return has_crc(self._view, self._data, self.message.start, self.message.end)

    def _gather(self, size: int) -> bool:
        """Have the next `size` bytes in a row; False when the payload ends before."""
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
                raise OverLimit(Bound.WINDOW, self._window_bytes)
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
        """What was left of a piece, or the next."""
        if self._rest is None:
            return self._pieces.more()
        piece, self._rest = self._rest, None
        return piece

    def _take(self, piece: Piece) -> None:
        self._view = piece if isinstance(piece, memoryview) else memoryview(piece)
        self._data = self._view
        self._position = 0
        self._end = len(piece)
