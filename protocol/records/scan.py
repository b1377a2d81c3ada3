# cython: boundscheck=False, wraparound=False
# Why that is safe: a Cursor is made within its data and compares each read with its end; `_ordinary_run` breaks unless
# there is room for the longest fields, and is given what the same end bounds.
"""The scan over the records of a batch: structure, timestamps and keys, without an object per record.

A plain Python file; `scan.pxd` beside it gives Cython the types, so the same file runs compiled where a C compiler
was at hand and interpreted where not. All arithmetic is modulo 2^64, as Java's long is: every value is kept as its
unsigned 64-bit pattern.

A record: length varint | attributes int8 | timestamp_delta varlong | offset_delta varint | key varint+bytes |
value varint+bytes | header count varint | headers. Varints are zig-zag; a negative size is null.
How strictly a broker reads depends on the codec (docs/checks.md): in a plain batch every record must fill
exactly the length it states; in a compressed one the length is read and ignored. Consumers use it, and disagree about
sizes below -1 and varints with more bits than their type: `strictly` stops at the first such record (docs/framing.md).

Nearly all records are ordinary and good: `_ordinary_run` takes those, and leaves any other to the careful reading in
`scan_records`, which alone knows what is wrong with it. It reads strictly forward, and so over the ends of the pieces
that a payload is decompressed in. `Cursor` stands here because C inlines it only here: elsewhere, records with
headers took a third longer.
"""

from sluicegate.protocol.int64 import ALL_64

# Outcomes of a scan.
WHOLE = 0  # every record was read and nothing is left
BROKEN = 1  # the records do not follow the format: INVALID_RECORD
RAN_OUT = 2  # the data ended within a record, or before the last one
LEFT_OVER = 3  # bytes are left behind the last record
FOUND_BAD = 5  # a record is bad, and none was to be kept
AMBIGUOUS = 6  # brokers read a record, and consumers read it otherwise or not at all
BAD_LENGTH = 4  # the length of a record is no varint; a broker fails with UNKNOWN_SERVER_ERROR in a plain batch

# What to look for, and why a record is bad: the same bits.
NULL_KEY = 1
OUT_OF_WINDOW = 2
EVERY_RECORD = 4

# Why a record is ambiguous.
OTHER_LENGTH = "length"
OTHER_OFFSET = "offset"
NEGATIVE_SIZE = "size"
TOO_MANY_BITS = "bits"

_NULL_KEY, _OUT_OF_WINDOW, _EVERY_RECORD = NULL_KEY, OUT_OF_WINDOW, EVERY_RECORD
_U32 = 0xFFFFFFFF
_U64 = ALL_64
# How far to read before letting others go on, and what a record counts more that is read with care, or is bad.
_PAUSE_BYTES = 256 * 1024
_CAREFUL_BYTES = 64
_BAD_BYTES = 256

# An ordinary record's fields up to its key take at most this many bytes, those between key and value at most the other.
_ROOM_BEFORE_KEY = 24
_ROOM_BEFORE_VALUE = 6


class Ambiguity:
    """Why a record is ambiguous, the number that it states, and what that had to be (bytes, or an offset delta)."""

    def __init__(self, why, stated=0, expected=0):
        self.why = why
        self.stated = stated
        self.expected = expected


class Findings:
    """What is bad in a batch: `count` records, the first of them in `kept`, the first bad time in `first_time`.

    A finding is (index, reason, timestamp delta, offset delta, key size, value size).
    """

    def __init__(self):
        self.count = 0
        self.kept = []
        self.first_time = None

    def note(self, keep, index, reason, delta, offset_delta, key_size, value_size):
        self.count += 1
        is_first_time = reason != _NULL_KEY and self.first_time is None
        if self.count <= keep or is_first_time:
            finding = (index, reason, delta, offset_delta, key_size, value_size)
            if self.count <= keep:
                self.kept.append(finding)
            if is_first_time:
                self.first_time = finding


class Cursor:
    """A position in the data, and in what `pieces` has behind it; `failed` is set instead of raising.

    `bad_varint` is set too where no more data would help. Where the pieces stop, so does it: what they raise is raised.
    `overflowed`: a varint had bits that its type has no room for. `passed`: bytes of the pieces before this one.
    `source` is what `data` looks at, for who copies out of it.
    """

    def __init__(self, data, position, end, pieces=None, allowance=None):
        if position < 0 or end > len(data):
            raise IndexError(f"{position} to {end} of {len(data)} bytes")
        self.data = data
        self.source = data
        self.position = position
        self.end = end
        self.failed = False
        self.bad_varint = False
        self.overflowed = False
        self.passed = 0
        self.pieces = pieces
        self.allowance = allowance
        self.pause_at = position + _PAUSE_BYTES

    def refill(self):
        """Go on in the next piece; False when there is none."""
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

    def pause(self):
        """Let others go on, now and after as many bytes more."""
        self.allowance.worked(min(self.end, _PAUSE_BYTES))
        self.pause_at = self.position + _PAUSE_BYTES

    def varint(self):
        """An int32 in zig-zag; the top bits of a fifth byte are dropped, as a broker drops them."""
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
        if value > _U32:
            self.overflowed = True
        value &= _U32
        half = value >> 1
        return -half - 1 if value & 1 else half

    def varlong(self):
        """An int64 in zig-zag, as its unsigned pattern."""
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
                break
            shift += 7
            if shift > 63:
                self.failed = True
                self.bad_varint = True
                return 0
        value &= _U64
        return (value >> 1) ^ (_U64 if value & 1 else 0)

    def skip(self, size):
        """Go on by `size` bytes; a negative size is null and takes none."""
        if size > 0:
            while size > self.end - self.position:
                size -= self.end - self.position
                self.position = self.end
                if not self.refill():
                    self.failed = True
                    size = 0
            self.position += size


def _ordinary_run(
    data, position, end, most, framed, strictly, first, needs_keys, earliest_delta, window, exempt_delta, latest
):
    """Read up to `most` ordinary good records from `position` on: in the window, no headers, no odd varints or sizes.

    `framed`: only such as fill the length that they state. `strictly`: and have the offsets from `first` on, in turn.
    Returns (position behind the last, how many, the new `latest`). What it does not take may be good all the same.
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
        body = at
        at += 1  # attributes
        byte = data[at]
        at += 1
        delta = byte & 0x7F
        shift = 7
        while byte >= 0x80 and shift < 63:  # the tenth byte is for the careful reading
            byte = data[at]
            at += 1
            delta |= (byte & 0x7F) << shift
            shift += 7
        if byte >= 0x80:
            break
        delta = (delta >> 1) ^ (_U64 if delta & 1 else 0)
        byte = data[at]  # of the offset delta
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
        if at >= end or data[at] != 0:  # the header count
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
    data,
    start,
    end,
    count,
    framed,
    look_for,
    earliest_delta,
    window,
    exempt_delta,
    overflow,
    pieces,
    allowance,
    keep,
    rehearsal=None,
    strictly=False,
):
    """Scan `count` records of data[start:end] and, where that is only the first piece, of what `pieces` has behind it.

    framed: a plain batch, whose records must fill the length they state. strictly: stop at the first record that
    consumers read otherwise. look_for: NULL_KEY, OUT_OF_WINDOW,
    EVERY_RECORD or a sum of them. A record's time is in the window when its timestamp delta minus `earliest_delta`
    (mod 2^64) is at most `window`. Two more are good: `exempt_delta`, the delta of timestamp -1, which means no time;
    and a difference of `overflow`, that of the one time 2^63 ms away, where Java's comparison overflows.
    `keep` 0: nobody wants to know more than that there is a bad one. `rehearsal`: times outside the window are not bad
    yet; it counts them, and says which are.
    Returns (outcome, records read, largest delta minus earliest_delta of a good record, bad), where bad is None,
    Findings that keep the first `keep`, or where the outcome is AMBIGUOUS the next record's Ambiguity.
    Raises OverLimit, and Abandoned.
    """
    cursor = Cursor(data, start, end, pieces, allowance)
    check_keys = (look_for & _NULL_KEY) != 0
    check_times = (look_for & _OUT_OF_WINDOW) != 0
    take_all = (look_for & _EVERY_RECORD) != 0
    bad = None
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
        record_length = cursor.varint()
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
        if cursor.failed:
            stands = framed or cursor.bad_varint or cursor.position < cursor.end
            return (BROKEN if stands else RAN_OUT, index, latest, bad)
        actual = cursor.passed + cursor.position - body
        if framed and actual != record_length:
            return (BROKEN, index, latest, bad)
        if strictly:
            if cursor.overflowed:
                return (AMBIGUOUS, index, latest, Ambiguity(TOO_MANY_BITS))
            if actual != record_length:
                return (AMBIGUOUS, index, latest, Ambiguity(OTHER_LENGTH, record_length, actual))
            if offset_delta != index:
                return (AMBIGUOUS, index, latest, Ambiguity(OTHER_OFFSET, offset_delta, index))
            if least_size < -1:
                return (AMBIGUOUS, index, latest, Ambiguity(NEGATIVE_SIZE, least_size, -1))
        if headers:
            allowance.spend_headers(headers)
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
                bad = Findings()
            cursor.pause_at -= _BAD_BYTES
            bad.note(keep, index, reason, delta, offset_delta, key_size, value_size)
        index += 1
    is_left_over = cursor.position < cursor.end or cursor.refill()
    return (LEFT_OVER if is_left_over else WHOLE, index, latest, bad)


def _length_outcome(cursor, framed):
    if cursor.position >= cursor.end and not cursor.bad_varint:
        return RAN_OUT
    return BAD_LENGTH if framed else BROKEN


def is_compiled():
    """Whether this module runs compiled."""
    return not __file__.endswith(".py")
