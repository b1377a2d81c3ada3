# cython: boundscheck=False, wraparound=False
# Why that is safe: a Cursor compares each read with its end, which is the end of the record while a record is read, and
# `_begins` is only called for a name that the Cursor has read.
"""Rewrites a batch's records in order, one at a time: new timestamps, values and headers. Other bytes stay unchanged.

A record (KIP-98): length varint | attributes int8 | timestamp_delta varlong | offset_delta varint | key | value |
headers.

The changes also affect a record's length, the deltas (if the first record gets another timestamp), and the batch's
header. Deltas wrap like Java's long. One piece of the payload, one record and the new batch are in memory.

Compiled with the types in rewriting.pxd if a C compiler is installed.
"""

from collections.abc import Callable

from sluicegate.protocol.integers import ALL_64, SIGN_64
from sluicegate.protocol.records.batch_output import BatchOutput
from sluicegate.protocol.records.codecs.codec import Piece
from sluicegate.protocol.records.codecs.compression import PIECE_BYTES
from sluicegate.protocol.records.codecs.decompression import DecompressedStream
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget, OverLimit, PayloadLimit
from sluicegate.protocol.records.scan import Cursor

_SIGN_64 = SIGN_64
_U64 = ALL_64
_RECORD_WORK = 128
_HEADER_WORK = 8
_NEW_HEADER_WORK = 512
_PIECE_BYTES = PIECE_BYTES

Header = tuple[bytes, bytes | None]
Opened = tuple[Piece, int, int, DecompressedStream | None]
"""A payload: its first piece, the positions of the first record and of the end in it, and the pieces that follow."""


class CannotRewrite(Exception):
    """Raised if the payload does not consist of exactly the stated records. The message names the difference."""


class RecordChange:
    """The new parts of one record. A part that is None stays unchanged.

    - `value`: the new value.
    - `headers`: all headers in the format of a record, starting with their count.
    - `more`: `more_count` headers to append to the record's own.
    - `time`: the new timestamp (ms). That of the first record becomes the batch's base timestamp.
    """

    def __init__(
        self,
        value: bytes | None = None,
        headers: bytes | None = None,
        more: bytes = b"",
        more_count: int = 0,
        time: int | None = None,
    ) -> None:
        self.value = value
        self.headers = headers
        self.more = more
        self.more_count = more_count
        self.time = time


_NO_CHANGE = RecordChange()


class RecordReader:
    """A walk over the records. Its attributes are those of the current record; a size of -1 means null.

    - `attributes`: unused; every known client writes 0.
    - `timestamp`: int64 ms.
    - `is_padded`: whether a number in this or an earlier record takes more bytes than necessary.
    - `is_watched`: whether the name of a header begins with a prefix in `watched`.
    - `window_bytes`: the size of the largest record that may span several pieces.
    """

    def __init__(
        self,
        opened: Opened,
        count: int,
        base_timestamp: int,
        window_bytes: int,
        budget: DecompressionBudget,
        watched: tuple[bytes, ...] = (),
    ) -> None:
        data, start, end, pieces = opened
        self._cursor = Cursor(data, start, end, pieces, budget)
        self._count = count
        self._base = base_timestamp & _U64
        self._window_bytes = window_bytes
        self._budget = budget
        self._watched = watched
        self._source: Piece | bytearray = b""
        self._body = self._after_time = self._value_from = self._value_at = 0
        self._headers_from = self._headers_at = self._last_at = self._before_last_at = self._end = 0
        self.index = -1
        self.attributes = 0
        self.is_padded = False
        self.timestamp = 0
        self.key_size = -1
        self.value_size = -1
        self.header_count = 0
        self.is_watched = False

    def read_next(self) -> bool:
        """Read the next record. Return whether there is one.

        Raises CannotRewrite, OverLimit, and the errors of the budget.
        """
        cursor = self._cursor
        if self.index + 1 >= self._count:
            if cursor.position < cursor.end or cursor.refill():
                raise CannotRewrite("its payload is not exactly its records")
            return False
        self.index += 1
        length = cursor.varint()
        self.is_padded = self.is_padded or cursor.padded
        if cursor.failed or length < 0:
            raise CannotRewrite("its payload is not exactly its records")
        self._budget.check_held(length)
        if length > cursor.end - cursor.position:
            self._read_within(Cursor(self._gathered(length), 0, length))
        else:
            end, pieces = cursor.end, cursor.pieces
            cursor.end, cursor.pieces = cursor.position + length, None
            self._read_within(cursor)
            cursor.end, cursor.pieces = end, pieces
        self._budget.worked(_RECORD_WORK + length)
        return True

    def _read_within(self, cursor: Cursor) -> None:
        """Read the fields of a record that ends where the cursor ends."""
        self._source = cursor.source
        self._body = cursor.position
        self._end = cursor.end
        cursor.position += 1  # attributes
        self.timestamp = _signed((self._base + cursor.varlong()) & _U64)
        self._after_time = cursor.position
        cursor.varint()  # offset delta
        size = cursor.varint()
        self.key_size = size if size >= 0 else -1
        cursor.skip(size)
        self._value_from = cursor.position
        size = cursor.varint()
        self.value_size = size if size >= 0 else -1
        self._value_at = cursor.position
        cursor.skip(size)
        self._headers_from = cursor.position
        left = cursor.varint()
        self._headers_at = cursor.position
        self.header_count = left
        self.is_watched = False
        if left > 0:
            self._read_headers(cursor, left)
        if cursor.failed or left < 0 or cursor.position != self._end:
            raise CannotRewrite("its payload is not exactly its records")
        self.attributes = cursor.data[self._body]
        self.is_padded = self.is_padded or cursor.padded

    def _read_headers(self, cursor: Cursor, left: int) -> None:
        self._last_at = cursor.position
        while left > 0 and not cursor.failed:
            self._before_last_at = self._last_at
            self._last_at = cursor.position
            size = cursor.varint()
            at = cursor.position
            cursor.skip(size)
            if not cursor.failed and not self.is_watched:
                for prefix in self._watched:
                    if _begins(cursor, at, size, prefix):
                        self.is_watched = True
            cursor.skip(cursor.varint())
            self._budget.worked(_HEADER_WORK)
            left -= 1

    def _gathered(self, length: int) -> bytearray:
        """Return a record that spans several pieces."""
        if length > self._window_bytes:
            raise OverLimit(PayloadLimit.WINDOW, self._window_bytes)
        cursor = self._cursor
        found = bytearray()
        while True:
            here = min(length - len(found), cursor.end - cursor.position)
            found += cursor.source[cursor.position : cursor.position + here]
            cursor.position += here
            if len(found) == length:
                return found
            if not cursor.refill():
                raise CannotRewrite("its payload is not exactly its records")

    def value(self) -> bytes | None:
        """Return the record's value, or None for null."""
        if self.value_size < 0:
            return None
        # Slicing the bytearray would make a second copy, which takes 16 MiB more memory and twice the time without
        # `give_way`.
        return bytes(memoryview(self._source)[self._value_at : self._value_at + self.value_size])

    def headers(self) -> tuple[Header, ...]:
        """Return all of the record's headers."""
        return self._headers_after(self._headers_at, self.header_count)

    def last_headers(self) -> tuple[Header, ...]:
        """Return the record's last two headers, or as many as there are."""
        if self.header_count < 2:
            return self.headers()
        return self._headers_after(self._before_last_at, 2)

    def renamed(self, rename: Callable[[bytes], bytes], without_last: int = 0) -> bytes:
        """Return the headers in the format of a record, with watched names replaced, but without their count.

        The last `without_last` headers are omitted.
        """
        cursor = Cursor(self._source, self._headers_at, self._end)
        left = self.header_count - without_last
        found = bytearray()
        copied = self._headers_at
        while left > 0:
            at = cursor.position
            size = cursor.varint()
            name_at = cursor.position
            cursor.skip(size)
            for prefix in self._watched:
                if _begins(cursor, name_at, size, prefix):
                    name = rename(bytes(self._source[name_at : cursor.position]))
                    found += self._source[copied:at]
                    _put_varint(found, len(name))
                    found += name
                    copied = cursor.position
                    self._budget.worked(_NEW_HEADER_WORK)
            cursor.skip(cursor.varint())
            self._budget.worked(_HEADER_WORK)
            left -= 1
        found += self._source[copied : cursor.position]
        return bytes(found)

    def _headers_after(self, position: int, left: int) -> tuple[Header, ...]:
        cursor = Cursor(self._source, position, self._end)
        found: list[Header] = []
        while left > 0:
            size = cursor.varint()
            at = cursor.position
            cursor.skip(size)
            name = bytes(self._source[at : cursor.position])
            size = cursor.varint()
            at = cursor.position
            cursor.skip(size)
            found.append((name, bytes(self._source[at : cursor.position]) if size >= 0 else None))
            self._budget.worked(_NEW_HEADER_WORK)
            left -= 1
        return tuple(found)


Ask = Callable[[RecordReader], RecordChange | None]
"""Maps a record to its change, or to None if the record stays unchanged."""


class RecordRewriter:
    """A writer of records into `output`. `base_timestamp` and `latest` are those of the written records (ms)."""

    def __init__(self, output: BatchOutput, base_timestamp: int) -> None:
        self._output = output
        self._plain = output.plain
        self._is_rebased = False
        self.base_timestamp = base_timestamp
        self.latest = base_timestamp

    def write(self, record: RecordReader, change: RecordChange | None) -> None:
        """Write a reader's current record, with its change. Raises BatchTooLarge, and the errors of the output."""
        time = record.timestamp
        is_restamped = self._is_rebased
        if change is not None and change.time is not None:
            time = change.time
            is_restamped = True
            if record.index == 0:
                self._is_rebased = True
                self.base_timestamp = time
        if record.index == 0 or time > self.latest:
            self.latest = time
        if change is None and not is_restamped:
            plain = self._plain
            _put_varint(plain, record._end - record._body)
            plain += record._source[record._body : record._end]
        else:
            self._write_changed(record, change, time, is_restamped)
        if len(self._plain) >= _PIECE_BYTES:
            self._output.flush()

    def _write_changed(self, record: RecordReader, change: RecordChange | None, time: int, is_restamped: bool) -> None:
        source, plain = record._source, self._plain
        change = _NO_CHANGE if change is None else change
        delta = _signed(((time & _U64) - (self.base_timestamp & _U64)) & _U64)
        kept_from = record._after_time if is_restamped else record._body
        length = record._value_from - kept_from
        if is_restamped:
            length += 1 + _size_of_varint(delta)
        value, headers, more = change.value, change.headers, change.more_count
        if value is None:
            length += record._headers_from - record._value_from
        else:
            length += _size_of_varint(len(value)) + len(value)
        if headers is not None:
            length += len(headers)
        else:
            length += _size_of_varint(record.header_count + more) + record._end - record._headers_at + len(change.more)
        _put_varint(plain, length)
        if is_restamped:
            plain += source[record._body : record._body + 1]
            _put_varint(plain, delta)
        if value is None:
            plain += source[kept_from : record._headers_from]
        else:
            plain += source[kept_from : record._value_from]
            _put_varint(plain, len(value))
            plain += value
        if headers is not None:
            plain += headers
        else:
            _put_varint(plain, record.header_count + more)
            plain += source[record._headers_at : record._end]
            plain += change.more


def rewrite_records(
    opens: Callable[[], RecordReader], ask: Ask, writes: Callable[[], RecordRewriter]
) -> RecordRewriter | None:
    """Write a batch's records with the changes that `ask` returns for each; return None if nothing changes.

    Calls `ask` in the order of the records. Nothing is written before the first change, at which the batch is opened
    again. Raises CannotRewrite, OverLimit, BatchTooLarge, and the errors of `ask` and of the budgets of reader and
    output.
    """
    record = opens()
    change: RecordChange | None = None
    while change is None:
        if not record.read_next():
            return None
        change = ask(record)
    writer = writes()
    if record.index > 0:
        first = record.index
        record = opens()
        while record.read_next() and record.index < first:
            writer.write(record, None)
    writer.write(record, change)
    while record.read_next():
        writer.write(record, ask(record))
    return writer


def encoded(headers: tuple[Header, ...]) -> bytes:
    """Return headers consecutively in the format of a record, without their count."""
    found = bytearray()
    for name, value in headers:
        _put_varint(found, len(name))
        found += name
        _put_varint(found, -1 if value is None else len(value))
        found += value or b""
    return bytes(found)


def _begins(cursor: Cursor, at: int, size: int, prefix: bytes) -> bool:
    """Return whether the name of `size` bytes at `at`, which the cursor has read, begins with `prefix`."""
    most = len(prefix)
    if size < most:
        return False
    i = 0
    while i < most:
        if cursor.data[at + i] != prefix[i]:
            return False
        i += 1
    return True


def _put_varint(out: bytearray, value: int) -> None:
    """Append the zigzag encoding of an int64."""
    left = ((value << 1) ^ (_U64 if value < 0 else 0)) & _U64
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)


def _size_of_varint(value: int) -> int:
    left = ((value << 1) ^ (_U64 if value < 0 else 0)) & _U64
    size = 1
    while left > 0x7F:
        left >>= 7
        size += 1
    return size


def _signed(pattern: int) -> int:
    """Return a 64-bit pattern as an int64."""
    return (pattern ^ _SIGN_64) - _SIGN_64
