# cython: boundscheck=False, wraparound=False
# Why that is safe: a Cursor is created within its data and compares each read with its end. `_ordinary_run` stops
# unless there is room for the longest fields, and its end is within the same data.
"""Scans a batch's records for structure, timestamps and keys, without creating an object per record.

This is plain Python, and `scan.pxd` gives Cython the types. The same file therefore runs compiled, or interpreted
without a C compiler. All arithmetic is modulo 2^64, like Java's long: every value is its unsigned 64-bit pattern.

A record: length varint | attributes int8 | timestamp_delta varlong | offset_delta varint | key varint+bytes |
value varint+bytes | header count varint | headers. Varints are zigzag; a negative size is null.

How strictly a broker reads depends on the codec (docs/checks.md). In an uncompressed batch, each record must fill
exactly the length that it states. In a compressed batch, brokers read the length but ignore it. Consumers use it, and
they disagree about sizes below -1 and about varints with more bits than their type. With `strictly`, the scan stops at
the first such record (docs/framing.md).

Nearly all records are ordinary and good. `_ordinary_run` reads these. It leaves all others to `scan_records`, which
reads carefully and is the only place that determines what is wrong with a record. The scan only moves forward, so it
continues across the pieces into which a payload is decompressed. `Cursor` is in this file because C inlines it only
here: in another file, records with headers took a third longer.
"""

from array import array
from collections.abc import Sequence

from sluicegate.protocol.integers import ALL_64, SIGN_64
from sluicegate.protocol.records.codecs.decompression import DecompressedStream
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget

# Outcomes of a scan.
WHOLE = 0  # every record was read and no bytes are left
BROKEN = 1  # the records do not follow the format: INVALID_RECORD
RAN_OUT = 2  # the data ended within a record, or before the last record
LEFT_OVER = 3  # bytes are left after the last record
FOUND_BAD = 5  # a record is bad, and the caller keeps none
AMBIGUOUS = 6  # brokers read a record that consumers read differently or not at all
BAD_LENGTH = 4  # a record's length is not a varint; for an uncompressed batch, a broker fails with UNKNOWN_SERVER_ERROR

# The checks of a scan, and the reasons why a record is bad. Both use the same bits.
NULL_KEY = 1
OUT_OF_WINDOW = 2
EVERY_RECORD = 4

# Reasons why a record is ambiguous.
OTHER_LENGTH = "length"
OTHER_OFFSET = "offset"
NEGATIVE_SIZE = "size"
TOO_MANY_BITS = "bits"
PADDED_LENGTH = "padded"

_NULL_KEY, _OUT_OF_WINDOW, _EVERY_RECORD = NULL_KEY, OUT_OF_WINDOW, EVERY_RECORD
_U32 = 0xFFFFFFFF
_U64 = ALL_64
_SIGN_64 = SIGN_64
# The number of bytes to read before other work may run. A carefully read or bad record counts as this many more bytes.
_PAUSE_BYTES = 256 * 1024
_CAREFUL_BYTES = 64
_BAD_BYTES = 256

# The maximum size of an ordinary record's fields before its key, and of those between key and value.
_ROOM_BEFORE_KEY = 24
_ROOM_BEFORE_VALUE = 6

FlawedRecord = tuple[int, int, int, int, int, int]
"""A bad record: (index, reason, timestamp delta, offset delta, key size, value size)."""


class Ambiguity:
    """The reason why a record is ambiguous, the number that it states, and the expected number.

    The numbers are in bytes, or offset deltas.
    """

    def __init__(self, why: str, stated: int = 0, expected: int = 0) -> None:
        self.why = why
        self.stated = stated
        self.expected = expected


class BadRecords:
    """A batch's bad records: their `count`, the first ones in `kept`, and the first bad timestamp in `first_time`."""

    def __init__(self) -> None:
        self.count = 0
        self.kept: list[FlawedRecord] = []
        self.first_time: FlawedRecord | None = None

    def note(
        self, keep: int, index: int, reason: int, delta: int, offset_delta: int, key_size: int, value_size: int
    ) -> None:
        """Count a bad record, and keep it if it is among the first `keep`."""
        self.count += 1
        is_first_time = reason != _NULL_KEY and self.first_time is None
        if self.count <= keep or is_first_time:
            flawed = (index, reason, delta, offset_delta, key_size, value_size)
            if self.count <= keep:
                self.kept.append(flawed)
            if is_first_time:
                self.first_time = flawed


class RehearsalCounter:
    """A counter of a batch's records that rehearsed bounds would reject, by a broker's rules for bounds (KIP-937).

    `before_max_ms` and `after_max_ms` are the bounds in force; `befores` and `afters` are rehearsed (ms). Call `begin`
    first, then `rejects` for each record outside the narrowest of all bounds. `keeps_any` is whether the bounds in
    force accept any of these records. `ahead_ms` is how far the latest accepted record is ahead of now.
    """

    def __init__(
        self, before_max_ms: int, after_max_ms: int, befores: Sequence[int] = (), afters: Sequence[int] = ()
    ) -> None:
        self._before_max_ms = before_max_ms
        self._after_max_ms = after_max_ms
        self._befores = array("q", [*befores, 0])  # never empty, because a buffer must not be empty
        self._afters = array("q", [*afters, 0])
        self._before_count = len(befores)
        self._after_count = len(afters)
        self._counts = array("q", bytes(8 * (self._before_count + self._after_count + 1)))
        self._now_delta = 0
        self.ahead_ms = 0
        self.keeps_any = False

    def begin(self, now_ms: int, base_timestamp: int) -> None:
        """Set the time against which bounds are checked, and the base of the timestamp deltas."""
        self._now_delta = (now_ms - base_timestamp) & _U64

    def rejects(self, delta: int) -> bool:
        """Count a record by its timestamp delta (64-bit pattern). Return whether the bounds in force reject it."""
        behind = _signed((self._now_delta - delta) & _U64)
        ahead = _signed((delta - self._now_delta) & _U64)
        i = 0
        while i < self._before_count:
            if behind > self._befores[i]:
                self._counts[i] += 1
            i += 1
        i = 0
        while i < self._after_count:
            if ahead > self._afters[i]:
                self._counts[self._before_count + i] += 1
            i += 1
        if behind > self._before_max_ms or ahead > self._after_max_ms:
            return True
        if not self.keeps_any or ahead > self.ahead_ms:
            self.ahead_ms = ahead
            self.keeps_any = True
        return False

    @property
    def counts(self) -> tuple[int, ...]:
        """Return how many records each bound would reject: first the bounds for the past, then those for the future."""
        return tuple(self._counts)[:-1]


class Cursor:
    """A position in the data and in the `pieces` that follow. It sets `failed` instead of raising an error.

    `bad_varint` is also set if more data would not help. Exceptions from the pieces pass through. `overflowed` is set
    if a varint had more bits than its type, and `padded` if it had more bytes than its value needs. `passed` is the
    size of the earlier pieces (bytes). `source` is the object of which `data` is a view, for copies.
    """

    def __init__(
        self,
        data: bytes | bytearray | memoryview,
        position: int,
        end: int,
        pieces: DecompressedStream | None = None,
        budget: DecompressionBudget | None = None,
    ) -> None:
        if position < 0 or end > len(data):
            raise IndexError(f"{position} to {end} of {len(data)} bytes")
        self.data = data
        self.source = data
        self.position = position
        self.end = end
        self.failed = False
        self.bad_varint = False
        self.overflowed = False
        self.padded = False
        self.passed = 0
        self.pieces = pieces
        self.budget = budget
        self.pause_at = position + _PAUSE_BYTES

    def refill(self) -> bool:
        """Continue in the next piece. Return False if there is none."""
        if self.failed or self.pieces is None:
            return False
        piece = self.pieces.more()
        if piece is None:
            self.pieces = None
            return False
        self.passed += self.position
        self.data = piece
        self.source = piece
        self.position = 0
        self.end = len(piece)
        self.pause()
        return True

    def pause(self) -> None:
        """Let other work run now, and again after `_PAUSE_BYTES` more bytes."""
        if self.budget is not None:
            self.budget.worked(min(self.end, _PAUSE_BYTES))
        self.pause_at = self.position + _PAUSE_BYTES

    def varint(self) -> int:
        """Read a zigzag int32. Like a broker, drops the top bits of a fifth byte."""
        value = 0
        shift = 0
        while True:
            if self.position >= self.end and not self.refill():
                self.failed = True
                return 0
            byte = self.data[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 28:
                self.failed = True
                self.bad_varint = True
                return 0
        if shift and byte == 0:
            self.padded = True
        if value > _U32:
            self.overflowed = True
        value &= _U32
        half = value >> 1
        return -half - 1 if value & 1 else half

    def varlong(self) -> int:
        """Read a zigzag int64 as its unsigned pattern."""
        value = 0
        shift = 0
        while True:
            if self.position >= self.end and not self.refill():
                self.failed = True
                return 0
            bits = self.data[self.position]
            self.position += 1
            value |= (bits & 0x7F) << shift
            if bits < 0x80:
                if shift == 63 and bits > 1:
                    self.overflowed = True
                if shift and bits == 0:
                    self.padded = True
                break
            shift += 7
            if shift > 63:
                self.failed = True
                self.bad_varint = True
                return 0
        value &= _U64
        return (value >> 1) ^ (_U64 if value & 1 else 0)

    def skip(self, size: int) -> None:
        """Skip `size` bytes. A negative size means null and skips nothing."""
        if size > 0:
            while size > self.end - self.position:
                size -= self.end - self.position
                self.position = self.end
                if not self.refill():
                    self.failed = True
                    size = 0
            self.position += size


def _ordinary_run(
    data: bytes | bytearray | memoryview,
    position: int,
    end: int,
    most: int,
    framed: bool,
    strictly: bool,
    first: int,
    needs_keys: bool,
    earliest_delta: int,
    window: int,
    exempt_delta: int,
    latest: int,
) -> tuple[int, int, int]:
    """Read up to `most` ordinary good records: in the window, without headers, and without odd varints or sizes.

    Reading starts at `position`. If `framed`, each record must fill the length that it states. If `strictly`, offsets
    must also count up from `first`. Returns (position after the last record, number of records, the new `latest`). A
    record that was not read may still be good.
    """
    taken = 0
    expected = first << 1
    while taken < most:
        at = position
        if end - at < _ROOM_BEFORE_KEY:
            break
        byte = data[at]
        at += 1
        length = byte & 0x7F
        if byte >= 0x80:
            byte = data[at]
            at += 1
            length |= (byte & 0x7F) << 7
            if byte >= 0x80:
                byte = data[at]
                at += 1
                length |= (byte & 0x7F) << 14
                if byte >= 0x80:
                    break
            if byte == 0:  # padded
                break
        body = at
        at += 1  # attributes
        byte = data[at]
        at += 1
        delta = byte & 0x7F
        shift = 7
        while byte >= 0x80 and shift < 63:  # the careful path handles a tenth byte
            byte = data[at]
            at += 1
            delta |= (byte & 0x7F) << shift
            shift += 7
        if byte >= 0x80:
            break
        delta = (delta >> 1) ^ (_U64 if delta & 1 else 0)
        byte = data[at]  # offset delta
        at += 1
        offset = byte & 0x7F
        shift = 7
        while byte >= 0x80 and shift < 28:
            byte = data[at]
            at += 1
            offset |= (byte & 0x7F) << shift
            shift += 7
        if byte >= 0x80 or (strictly and offset != expected):
            break
        size = data[at]
        at += 1
        if size >= 0x80:
            byte = data[at]
            at += 1
            size = (size & 0x7F) | (byte << 7)
            if byte >= 0x80:
                break
        if size & 1:
            if needs_keys or size != 1:
                break
        else:
            at += size >> 1
        if end - at < _ROOM_BEFORE_VALUE:
            break
        size = data[at]
        at += 1
        if size >= 0x80:
            byte = data[at]
            at += 1
            size = (size & 0x7F) | ((byte & 0x7F) << 7)
            if byte >= 0x80:
                byte = data[at]
                at += 1
                size |= (byte & 0x7F) << 14
                if byte >= 0x80:
                    byte = data[at]
                    at += 1
                    size |= byte << 21
                    if byte >= 0x80:
                        break
        if not size & 1:
            at += size >> 1
        elif size != 1:
            break
        if at >= end or data[at] != 0:  # header count
            break
        at += 1
        if framed and length != (at - body) << 1:
            break
        ahead = (delta - earliest_delta) & _U64
        if ahead > window or delta == exempt_delta:
            break
        latest = max(latest, ahead)
        position = at
        taken += 1
        expected += 2
    return position, taken, latest


def scan_records(
    data: bytes | bytearray | memoryview,
    start: int,
    end: int,
    count: int,
    framed: bool,
    look_for: int,
    earliest_delta: int,
    window: int,
    exempt_delta: int,
    overflow: int,
    pieces: DecompressedStream | None,
    budget: DecompressionBudget,
    keep: int,
    rehearsal: RehearsalCounter | None = None,
    strictly: bool = False,
) -> tuple[int, int, int, BadRecords | Ambiguity | None]:
    """Scan `count` records in data[start:end] and, if that is only the first piece, in the `pieces` that follow.

    - `framed`: the batch is uncompressed, so its records must fill the length that they state.
    - `strictly`: stop at the first record that consumers read differently.
    - `look_for`: NULL_KEY, OUT_OF_WINDOW, EVERY_RECORD or a sum of them.
    - `earliest_delta` and `window`: a record's timestamp is good if its delta minus `earliest_delta` (mod 2^64) is at
      most `window`.
    - `exempt_delta`: the delta of timestamp -1, which means no timestamp and is also good.
    - `overflow`: a difference that is also good. It belongs to the one timestamp that is 2^63 ms away, where Java's
      comparison overflows.
    - `keep`: the number of bad records to keep; 0 stops at the first.
    - `rehearsal`: counts the timestamps outside the window, and decides which of them are bad.

    Returns (outcome, records read, largest delta minus earliest_delta of a good record, bad). `bad` is None, the
    BadRecords that keep the first `keep`, or the next record's Ambiguity if the outcome is AMBIGUOUS. Raises OverLimit
    and Abandoned.
    """
    cursor = Cursor(data, start, end, pieces, budget)
    check_keys = (look_for & _NULL_KEY) != 0
    check_times = (look_for & _OUT_OF_WINDOW) != 0
    take_all = (look_for & _EVERY_RECORD) != 0
    bad: BadRecords | None = None
    latest = 0
    index = 0
    ordinary_window = window if check_times else _U64
    while index < count:
        if cursor.position >= cursor.pause_at:
            cursor.pause()
        if not take_all:
            cursor.position, taken, latest = _ordinary_run(
                cursor.data, cursor.position, min(cursor.end, cursor.pause_at), count - index, framed or strictly,
                strictly, index, check_keys, earliest_delta, ordinary_window, exempt_delta, latest,
            )  # fmt: skip
            index += taken
            if index >= count:
                break
        cursor.pause_at -= _CAREFUL_BYTES
        cursor.padded = False
        record_length = cursor.varint()
        has_padded_length = cursor.padded
        if cursor.failed:
            return (_length_outcome(cursor, framed), index, latest, bad)
        body = cursor.passed + cursor.position
        if framed and record_length > cursor.end - cursor.position:
            return (BROKEN, index, latest, bad)
        cursor.skip(1)
        delta = cursor.varlong()
        offset_delta = cursor.varint()
        key_size = cursor.varint()
        cursor.skip(key_size)
        value_size = cursor.varint()
        cursor.skip(value_size)
        header_count = cursor.varint()
        if not cursor.failed and (header_count < 0 or (framed and header_count > cursor.end - cursor.position)):
            return (BROKEN, index, latest, bad)
        headers = header_count
        least_size = min(key_size, value_size)
        while header_count > 0 and not cursor.failed:
            name_size = cursor.varint()
            if name_size < 0:
                return (BROKEN, index, latest, bad)
            cursor.skip(name_size)
            size = cursor.varint()
            least_size = min(least_size, size)
            cursor.skip(size)
            header_count -= 1
            if cursor.position >= cursor.pause_at:
                cursor.pause()
        if cursor.failed:  # mypy does not see that `skip` sets it
            is_broken = framed or cursor.bad_varint or cursor.position < cursor.end  # type: ignore[unreachable]
            return (BROKEN if is_broken else RAN_OUT, index, latest, bad)
        actual = cursor.passed + cursor.position - body
        if framed and actual != record_length:
            return (BROKEN, index, latest, bad)
        if strictly:
            if cursor.overflowed:
                return (AMBIGUOUS, index, latest, Ambiguity(TOO_MANY_BITS))
            if has_padded_length:
                return (AMBIGUOUS, index, latest, Ambiguity(PADDED_LENGTH))
            if actual != record_length:
                return (AMBIGUOUS, index, latest, Ambiguity(OTHER_LENGTH, record_length, actual))
            if offset_delta != index:
                return (AMBIGUOUS, index, latest, Ambiguity(OTHER_OFFSET, offset_delta, index))
            if least_size < -1:
                return (AMBIGUOUS, index, latest, Ambiguity(NEGATIVE_SIZE, least_size, -1))
        if headers:
            budget.spend_headers(headers)
        reason = 0
        ahead = (delta - earliest_delta) & _U64
        if check_keys and key_size < 0:
            reason = _NULL_KEY
        elif take_all:
            reason = _EVERY_RECORD
        elif check_times and ahead > window:
            if delta != exempt_delta and ahead != overflow and (rehearsal is None or rehearsal.rejects(delta)):
                reason = _OUT_OF_WINDOW
        elif ahead > latest and delta != exempt_delta:
            latest = ahead
        if reason:
            if keep == 0:
                return (FOUND_BAD, index, latest, None)
            if bad is None:
                bad = BadRecords()
            cursor.pause_at -= _BAD_BYTES
            bad.note(keep, index, reason, delta, offset_delta, key_size, value_size)
        index += 1
    is_left_over = cursor.position < cursor.end or cursor.refill()
    return (LEFT_OVER if is_left_over else WHOLE, index, latest, bad)


def _length_outcome(cursor: Cursor, framed: bool) -> int:
    if cursor.position >= cursor.end and not cursor.bad_varint:
        return RAN_OUT
    return BAD_LENGTH if framed else BROKEN


def _signed(pattern: int) -> int:
    """Return a 64-bit pattern as an int64."""
    return (pattern ^ _SIGN_64) - _SIGN_64


def is_compiled() -> bool:
    """Return whether this module runs compiled."""
    return not __file__.endswith(".py")
