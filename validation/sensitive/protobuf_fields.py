"""Replaces sensitive strings in a Protobuf message, using its descriptor. All other bytes stay unchanged.

This includes unknown fields. A path consists of field names and map keys. Repeated fields are not part of a path. A
replacement changes the length of the string and of each surrounding message. Wire format:
https://protobuf.dev/programming-guides/encoding.
"""

from collections.abc import Callable
from typing import Any, Final

from sluicegate.protocol.integers import unsigned_varint
from sluicegate.validation.sensitive.edits import Unmaskable
from sluicegate.validation.sensitive.paths import FieldPolicy
from sluicegate.validation.sensitive.protobuf_keys import MapKey
from sluicegate.validation.sensitive.protobuf_messages import Map, MessageFields, WalkStep, WireType
from sluicegate.validation.sensitive.texts import PIECE_BYTES, distinguishing_bytes, name_in, replacement
from sluicegate.validation.sensitive.writing import ValueWriter

_MOST_DEPTH: Final = 100  # as in Protobuf's own readers
_CONTINUES: Final = 0x80
_LAST_SHIFT: Final = 63
_FIELD_WORK: Final = 1024
_BYTE_WORK: Final = 4
_COUNTED_WORK: Final = 64 * 1024
_MAP_KEY: Final = 1
_SKIP, _SKIP_LENGTH, _SKIP_VARINT, _STRING = WalkStep.SKIP, WalkStep.SKIP_LENGTH, WalkStep.SKIP_VARINT, WalkStep.STRING
_MESSAGE, _MAP, _GROUP, _END_GROUP, _REFUSE = (
    WalkStep.MESSAGE,
    WalkStep.MAP,
    WalkStep.GROUP,
    WalkStep.END_GROUP,
    WalkStep.REFUSE,
)


class NotOfMessage(Unmaskable):
    """Raised if the bytes are not a message of any type with these fields. No reader finds sensitive fields in them."""


def mask_protobuf(
    data: bytes, begin: int, fields: MessageFields, writer: ValueWriter, worked: Callable[[int], None]
) -> None:
    """Write the replacements in a message, starting at `begin`.

    Raises Unmaskable, and the errors of `writer` and `worked`.
    """
    _Walk(data, begin, writer, worked).message(fields, len(data), 0)


class _Walk:
    def __init__(self, data: bytes, begin: int, writer: ValueWriter, worked: Callable[[int], None]) -> None:
        self._data = data
        self._writer = writer
        self._worked = worked
        self._work = 0
        self._at = begin

    def message(self, fields: MessageFields, end: int, depth: int, group: int = 0) -> None:
        """Move past the fields of a message that ends at `end`, or at the end of the group with the number `group`."""
        _check_depth(depth)
        data = self._data
        while self._at < end:
            self._work += _FIELD_WORK
            if self._work >= _COUNTED_WORK:
                self._count()
            tag = data[self._at]
            if tag < _CONTINUES:
                self._at += 1
            else:
                tag = self._varint(end)
            does, subject = fields.get(tag) or fields.step_for(tag, self._worked)
            if does is _SKIP_VARINT:
                self._varint(end)
            elif does is _SKIP_LENGTH:
                size = self._length(end)
                self._at += size
            elif does is _STRING:
                self._string(subject, end)
            elif does is _MESSAGE:
                length_at = self._at
                size = self._length(end)
                self._part(subject, length_at, self._at, self._at + size, depth)
            elif does is _END_GROUP:
                if group != tag >> 3:
                    raise self._no_message()
                return
            else:
                self._seldom(does, subject, tag, end, depth)
        if group or self._at != end:
            raise self._no_message()

    def _seldom(self, does: WalkStep, subject: Any, tag: int, end: int, depth: int) -> None:
        if does is _MAP:
            length_at = self._at
            size = self._length(end)
            start = self._at
            name = self._key(subject, start + size)
            self._part(subject.fields_of(name, self._worked), length_at, start, start + size, depth)
        elif does is _GROUP:
            self.message(subject, end, depth + 1, tag >> 3)
        elif does is _SKIP:
            if subject > end - self._at:
                raise self._no_message()
            self._at += subject
        elif does is _REFUSE:
            if tag & 7 == WireType.LENGTH:
                self._length(end)
            subject()
        else:
            raise self._no_message()

    def _part(self, fields: MessageFields, length_at: int, start: int, end: int, depth: int) -> None:
        """Move past a message within another one."""
        writer = self._writer
        around = writer.begin_part(start)
        self.message(fields, end, depth + 1)
        writer.end_part(around, length_at, start, end, unsigned_varint)

    def _count(self) -> None:
        counted, self._work = self._work, 0
        self._worked(counted)

    def _key(self, of: Map, end: int) -> str:
        """Return an entry's last key, as JSON writes it, without moving. The key may follow its value."""
        key: MapKey = of.key
        start = self._at
        found: tuple[int, int] | None = None
        while self._at < end:
            self._work += _FIELD_WORK
            if self._work >= _COUNTED_WORK:
                self._count()
            tag = self._varint(end)
            before = self._at
            does, subject = of.skipped.step_for(tag, self._worked)
            if does is _SKIP_VARINT:
                self._varint(end)
            elif does is _SKIP_LENGTH:
                size = self._length(end)
                before = self._at
                self._at += size
            elif does is _END_GROUP:
                raise self._no_message()
            else:
                self._seldom(does, subject, tag, end, 0)
            if tag == key.tag:
                found = before, self._at
        self._at = start
        if found is None:
            return key.default
        if not key.is_text:
            return key.text_of(self._data[found[0] : found[1]])
        begin, stop = found
        self._work += stop - begin
        try:
            return name_in(self._data, begin, stop, of.nodes, self._worked)
        except UnicodeError:  # valid in proto2, but not equal to any name
            enough = max(PIECE_BYTES, distinguishing_bytes(of.nodes))
            return self._data[begin : min(stop, begin + enough)].decode(errors="replace")

    def _string(self, fields: FieldPolicy, end: int) -> None:
        length_at = self._at
        size = self._length(end)
        start = self._at
        self._at = start + size
        self._work += _BYTE_WORK * size
        try:
            new = replacement(self._data, start, self._at, fields, self._worked)
        except UnicodeError:  # a valid message in proto2
            raise Unmaskable(str(self._no_message())) from None
        if new is not None:
            self._writer.replace(length_at, self._at, unsigned_varint(len(new)) + new, fields)

    def _length(self, end: int) -> int:
        """Return the length at the current position, and move past it."""
        at = self._at
        if at < end and self._data[at] < _CONTINUES:
            size = self._data[at]
            self._at = at + 1
        else:
            size = self._varint(end)
        if size > end - self._at:
            raise self._no_message()
        return size

    def _varint(self, end: int) -> int:
        value = shift = 0
        data, at = self._data, self._at
        while at < end and shift <= _LAST_SHIFT:
            byte = data[at]
            at += 1
            value |= (byte & (_CONTINUES - 1)) << shift
            if byte < _CONTINUES:
                self._at = at
                return value & ((1 << 64) - 1)
            shift += 7
        self._at = at
        raise self._no_message()

    def _no_message(self) -> NotOfMessage:
        return NotOfMessage(
            f"the value does not match its Protobuf schema at byte {self._at}, so its fields cannot be found"
        )


def _check_depth(depth: int) -> None:
    if depth > _MOST_DEPTH:
        raise Unmaskable(f"the value is nested more than {_MOST_DEPTH} levels deep")
