"""Replaces sensitive strings in a Protobuf message, found by its descriptor; all other bytes stay, unknown fields too.

A path has the names of fields, and a map's keys; repeated fields are passed through. The length of a string follows
from the change, and that of each message around it. Wire format: https://protobuf.dev/programming-guides/encoding.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from sluicegate.protocol.integers import unsigned_varint
from sluicegate.validation.sensitive.edits import Edits, Nodes, Unmaskable, below, check_other, check_string, fields_of

TaggedFields = Callable[[Any], Nodes]
"""Returns the places of a field, by its descriptor, if the schema tags it."""

_VARINT, _EIGHT_BYTES, _LENGTH, _GROUP, _END_GROUP, _FOUR_BYTES = range(6)
_MOST_DEPTH: Final = 100  # as the readers of Protobuf
_CONTINUES: Final = 0x80
_LAST_SHIFT: Final = 63
_MOST_FIELD: Final = (1 << 29) - 1
STRING_VALUE: Final = "google.protobuf.StringValue"
_ANY: Final = "google.protobuf.Any"
_KEY = 1


class NotOfMessage(Unmaskable):
    """The bytes are no message of any type with these fields: no reader finds sensitive fields in them."""


class MessageFields:
    """The fields of messages by number, with extensions; described on first use."""

    def __init__(self) -> None:
        self._known: dict[str, dict[int, Any]] = {}

    def of(self, message: Any) -> dict[int, Any]:
        """Return the descriptors of a message's fields. Raises Unmaskable for the message set format."""
        found = self._known.get(message.full_name)
        if found is None:
            if message.GetOptions().message_set_wire_format:
                raise Unmaskable("the schema has a message set, in which fields cannot be found")
            extensions = message.file.pool.FindAllExtensions(message) if message.is_extendable else ()
            found = {field.number: field for field in (*message.fields, *extensions)}
            self._known[message.full_name] = found
        return found


def edits_of_protobuf(
    data: bytes,
    begin: int,
    message: Any,
    root: Nodes,
    tagged: TaggedFields,
    fields: MessageFields,
    worked: Callable[[int], None],
) -> Edits:
    """Return the replacements in a message from `begin` on. Raises Unmaskable, and what `worked` raises; it is called
    with the size of each field.
    """
    walk = _Walk(data, begin, tagged, fields, worked)
    walk.message(message, len(data), root, 0)
    return walk.edits


class _Walk:
    def __init__(
        self, data: bytes, begin: int, tagged: TaggedFields, fields: MessageFields, worked: Callable[[int], None]
    ) -> None:
        self._data = data
        self._tagged = tagged
        self._fields = fields
        self._worked = worked
        self._at = begin
        self.edits = Edits()

    def message(self, kind: Any, end: int, nodes: Nodes, depth: int, group: int = 0) -> None:
        """Move after the fields of a message that ends at `end`, or with the end of the group with this number."""
        if depth > _MOST_DEPTH:
            raise Unmaskable(f"the value is nested more than {_MOST_DEPTH} levels deep")
        known = self._fields.of(kind) if kind is not None else {}
        while self._at < end:
            number, wire_type = self._tag(end)
            if wire_type == _END_GROUP:
                if group != number:
                    raise self._no_message()
                return
            field = known.get(number)
            self._field(field, number, wire_type, end, () if field is None else self._nodes_of(field, nodes), depth)
        if group or self._at != end:
            raise self._no_message()

    def _nodes_of(self, field: Any, nodes: Nodes) -> Nodes:
        inner = nodes
        if nodes:
            inner = below(nodes, field.full_name if field.is_extension else field.name)
            if field.containing_type.full_name == STRING_VALUE:
                inner += tuple(node for node in nodes if node.fields is not None)
        return inner + self._tagged(field)

    def _field(self, field: Any, number: int, wire_type: int, end: int, nodes: Nodes, depth: int) -> None:
        self._worked(0)
        inner = None if field is None else field.message_type
        if wire_type == _LENGTH:
            length_at = self._at
            size = self._varint(end)
            start = self._at
            if size > end - start:
                raise self._no_message()
            if field is None:
                self._at = start + size
            elif inner is not None:
                self._message_field(inner, length_at, start, size, nodes, depth)
            elif field.type == field.TYPE_STRING:
                self._string(length_at, start, size, nodes)
            else:
                check_other(nodes, "bytes" if field.type == field.TYPE_BYTES else "a number")
                self._at = start + size
        elif wire_type == _GROUP:
            if inner is not None and nodes:
                check_other(nodes, "a message; name its fields")
            is_known = inner is not None and field.type == field.TYPE_GROUP
            self.message(inner if is_known else None, end, nodes if is_known else (), depth + 1, number)
        else:
            if inner is None and field is not None and field.type != field.TYPE_STRING:
                check_other(nodes, "a number, a boolean or an enum")
            self._scalar(wire_type, end)

    def _message_field(self, kind: Any, length_at: int, start: int, size: int, nodes: Nodes, depth: int) -> None:
        since, end = self.edits.count, start + size
        if kind.GetOptions().map_entry:
            self._entry(kind, end, nodes, depth)
        else:
            if nodes:
                _check_message(kind, nodes)
            self.message(kind, end, nodes, depth + 1)
        if self.edits.count > since:
            self.edits.put_length(since, length_at, start, unsigned_varint(size + self.edits.growth(since)))

    def _entry(self, kind: Any, end: int, nodes: Nodes, depth: int) -> None:
        """Move after an entry of a map. Its key may follow its value, so it is read first."""
        inner: Nodes = ()
        if nodes:
            by_tag = tuple(node for node in nodes if node.passes_maps and node.fields)
            if len(by_tag) < sum(node.fields is not None for node in nodes):
                check_other(tuple(node for node in nodes if node not in by_tag), "a map; name its entries")
            inner = below(nodes, self._key(kind, end)) + by_tag
        value = kind.fields_by_name["value"]
        if depth >= _MOST_DEPTH:
            raise Unmaskable(f"the value is nested more than {_MOST_DEPTH} levels deep")
        while self._at < end:
            number, wire_type = self._tag(end)
            self._field(value if number == value.number else None, number, wire_type, end, inner, depth + 1)

    def _key(self, kind: Any, end: int) -> str:
        """Return the last key of an entry, as JSON writes it. A missing key is the default of its type."""
        unreadable = import_module("google.protobuf.message").DecodeError
        new = import_module("google.protobuf.message_factory").GetMessageClass(kind)
        own, start = bytearray(), self._at
        while self._at < end:
            before = self._at
            number, wire_type = self._tag(end)
            self._field(None, number, wire_type, end, (), 0)
            if number == _KEY:
                own += self._data[before : self._at]
        self._at = start
        try:
            key = new.FromString(bytes(own)).key
        except unreadable:
            raise Unmaskable(str(self._no_message())) from None
        return str(key).lower() if isinstance(key, bool) else str(key)

    def _string(self, length_at: int, start: int, size: int, nodes: Nodes) -> None:
        self._worked(size)
        self._at = start + size
        fields = fields_of(nodes)
        if fields is None:
            return
        check_string(nodes, fields)
        try:
            text = self._data[start : self._at].decode()
        except UnicodeDecodeError:  # in proto2 it is a message all the same
            raise Unmaskable(str(self._no_message())) from None
        replaced = fields.replaced(text)
        if replaced != text:
            new = replaced.encode()
            self.edits.replace(length_at, self._at, unsigned_varint(len(new)) + new, fields)

    def _scalar(self, wire_type: int, end: int) -> None:
        if wire_type == _VARINT:
            self._varint(end)
            return
        size = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}.get(wire_type)
        if size is None or size > end - self._at:
            raise self._no_message()
        self._at += size

    def _tag(self, end: int) -> tuple[int, int]:
        tag = self._varint(end)
        number = tag >> 3
        if not 0 < number <= _MOST_FIELD:
            raise self._no_message()
        return number, tag & 7

    def _varint(self, end: int) -> int:
        value = shift = 0
        while self._at < end and shift <= _LAST_SHIFT:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & (_CONTINUES - 1)) << shift
            if byte < _CONTINUES:
                return value & ((1 << 64) - 1)
            shift += 7
        raise self._no_message()

    def _no_message(self) -> NotOfMessage:
        return NotOfMessage(
            f"the value is not Protobuf of its schema at byte {self._at}, so its fields cannot be found"
        )


def _check_message(kind: Any, nodes: Nodes) -> None:
    """Raise Unmaskable if a message is sensitive as a whole, or may contain sensitive fields that cannot be found."""
    fields = fields_of(nodes)
    if kind.full_name != STRING_VALUE:
        check_other(nodes, "a message; name its fields")
    elif fields is not None:
        check_string(nodes, fields)
    if kind.full_name == _ANY:
        inner = next((node for node in nodes if node.leads_on), None)
        if inner is not None:
            path = ".".join(inner.path)
            raise Unmaskable(f"the field {path} is a {_ANY}, in which sensitive fields cannot be found; leave it out")
