"""Computes an upper bound of the cost of Protobuf's reader, and of the check for required fields, for one schema.

The reader allocates each message with space for all fields of its schema, so two bytes may become a message with
thousands of fields. The bound is therefore computed by following the bytes through the schema. Compiled with the types
in cost.pxd if a C compiler is installed.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from sluicegate.validation.rules.rule import INLINE_STEPS, UNBOUNDED

# In ns, measured with upb and rounded up by a factor of two or more. A message's cost includes a part per possible
# field.
_OF_MESSAGE, _OF_ENTRY, _OF_POSSIBLE_FIELD = 100, 800, 35
_OF_FIELD, _OF_GROUP, _OF_VARINT, _OF_BYTE = 80, 80, 25, 2
_STEP = 100
# Once the cost of a message exceeds the inline limit, the rest of it is not read.
_MOST_COUNTED = INLINE_STEPS * _STEP
_FIXED = 20
# If the size of a message allows at most this many steps, it is not read.
_FEW = 4_000
# The interpreted reader takes a few microseconds per field.
_INTERPRETED = 200
# The maximum number of fields that are described for one message, at a microsecond each.
_MOST_DESCRIBED = 3_000
# Wire types (https://protobuf.dev/programming-guides/encoding/#structure).
_EIGHT_BYTES, _LENGTH, _GROUP, _END_GROUP, _FOUR_BYTES = 1, 2, 3, 4, 5
_MOST_DEPTH = 100  # the same as the limit of the reader
_LAST_SHIFT = 63
_CONTINUES = 0x80


class FieldContent:
    """The content of a field: a message (with its descriptor), packed varints, or bytes. `cost` is in ns."""

    def __init__(self, message: Any, cost: int, is_packed: bool) -> None:
        self.message = message
        self.cost = cost
        self.is_packed = is_packed
        self.fields: dict[int, FieldContent] | None = None


_BYTES = FieldContent(None, _OF_FIELD, False)
_PACKED = FieldContent(None, _OF_FIELD, True)
_NO_FIELDS: dict[int, FieldContent] = {}


class TooManyDescriptions(Exception):
    """Raised if a message requires the descriptions of too many fields."""


class ProtobufCost:
    """The cost of messages with one descriptor.

    `may_lack_fields` is whether the message or an inner message has a required field.
    """

    def __init__(self, descriptor: Any) -> None:
        self._descriptor = descriptor
        self._kinds = DescribedFields()
        self._factor = 1 if _is_native() else _INTERPRETED
        self._fixed = self._of_byte = 0
        self.may_lack_fields = True
        try:
            reachable = list(_reachable(descriptor))
        except TooManyDescriptions:
            return
        most = _OF_FIELD + max(cost_of_message(message) for message in reachable)
        # A message takes at least two bytes, except for a group that is truncated by the end of the data.
        self._fixed = cost_of_message(descriptor) + most * _MOST_DEPTH // 2
        self._of_byte = _OF_BYTE + max(_OF_FIELD + _OF_GROUP, most // 2 + 1)
        self.may_lack_fields = any(is_required(field) for message in reachable for field in _fields_of(message))

    def steps(self, data: bytes) -> int:
        """Return an upper bound of the steps, computed from the size alone if that suffices."""
        ns = (self._fixed + len(data) * self._of_byte) * self._factor
        if 0 < ns <= _FEW * _STEP:
            return _FIXED + ns // _STEP
        self._kinds.left = _MOST_DESCRIBED
        try:
            walk = _Walk(data, self._kinds)
            ns = walk.cost(self._kinds.of(self._descriptor), cost_of_message(self._descriptor))
        except TooManyDescriptions:
            return UNBOUNDED
        if ns > _MOST_COUNTED:
            if not self._of_byte:
                return UNBOUNDED
            ns += self._fixed + walk.left() * self._of_byte
        return _FIXED + ns * self._factor // _STEP


class DescribedFields:
    """The fields of messages. They are described on first use, because a schema may have thousands."""

    def __init__(self) -> None:
        self.left = _MOST_DESCRIBED
        self._known: dict[str, dict[int, FieldContent]] = {}

    def of(self, message: Any) -> dict[int, FieldContent]:
        """Return a message's fields by number. Raises TooManyDescriptions."""
        kinds = self._known.get(message.full_name)
        if kinds is None:
            fields = _fields_of(message)
            self.left -= len(fields) + 1
            if self.left < 0:
                raise TooManyDescriptions
            kinds = self._known[message.full_name] = {field.number: _kind_of(field) for field in fields}
        return kinds


class _Walk:
    """A walk over one message and all inner messages."""

    def __init__(self, data: bytes, kinds: DescribedFields) -> None:
        self._data = data
        self._kinds = kinds
        self._at = 0

    def cost(self, kinds: dict[int, FieldContent], cost: int) -> int:
        """Return the cost in ns, up to the inline limit. For malformed data, return the cost up to the fault."""
        end = len(self._data)
        cost += end * _OF_BYTE
        outer: list[tuple[int, dict[int, FieldContent], bool]] = []
        in_group = False
        while cost <= _MOST_COUNTED:
            if self._at >= end:
                if not outer:
                    return cost
                end, kinds, in_group = outer.pop()
                continue
            tag = self._varint(end)
            wire_type = tag & 7
            if wire_type == _LENGTH:
                size = self._varint(end)
                if size < 0 or size > end - self._at:
                    return cost  # the data are truncated, so the reader stops here too
                kind = kinds.get(tag >> 3, _BYTES)
                cost += kind.cost
                if kind.is_packed:
                    cost += size * _OF_VARINT
                if kind.message is None:
                    self._at += size
                    continue
                if len(outer) == _MOST_DEPTH:
                    return cost
                outer.append((end, kinds, in_group))
                end = self._at + size
                in_group = False
                kinds = self._fields(kind)
            elif wire_type == _GROUP:
                kind = kinds.get(tag >> 3, _BYTES)
                cost += kind.cost + _OF_GROUP
                if len(outer) == _MOST_DEPTH:
                    return cost
                outer.append((end, kinds, in_group))
                in_group = True
                kinds = _NO_FIELDS if kind.message is None else self._fields(kind)
            elif wire_type == _END_GROUP:
                if not in_group:
                    return cost
                end, kinds, in_group = outer.pop()
            else:
                cost += _OF_FIELD
                if wire_type == _EIGHT_BYTES:
                    self._at += 8
                elif wire_type == _FOUR_BYTES:
                    self._at += 4
                elif wire_type > _FOUR_BYTES:
                    return cost
                else:
                    self._varint(end)
        return cost

    def left(self) -> int:
        """Return how many bytes remain unread."""
        return max(0, len(self._data) - self._at)

    def _fields(self, kind: FieldContent) -> dict[int, FieldContent]:
        if kind.fields is None:
            kind.fields = self._kinds.of(kind.message)
        return kind.fields

    def _varint(self, end: int) -> int:
        """Return the number. If it is truncated, return its available bits."""
        value = shift = 0
        while self._at < end:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & (_CONTINUES - 1)) << shift
            if byte < _CONTINUES or shift >= _LAST_SHIFT:
                break
            shift += 7
        return value


def cost_of_message(message: Any) -> int:
    """Return the cost of an empty message, in ns."""
    kind = _OF_ENTRY if message.GetOptions().map_entry else _OF_MESSAGE
    return kind + _OF_POSSIBLE_FIELD * len(message.fields)


def _fields_of(message: Any) -> list[Any]:
    """Return a message's fields and extensions. Raises TooManyDescriptions for the message set format."""
    if not message.is_extendable:
        return list(message.fields)
    if message.GetOptions().message_set_wire_format:
        raise TooManyDescriptions
    return [*message.fields, *message.file.pool.FindAllExtensions(message)]


def _reachable(descriptor: Any) -> Iterator[Any]:
    """Yield the descriptors of a message and of all possible inner messages. Raises TooManyDescriptions."""
    left = _MOST_DESCRIBED
    seen = {descriptor.full_name}
    waiting = [descriptor]
    while waiting:
        message = waiting.pop()
        yield message
        fields = _fields_of(message)
        left -= len(fields) + 1
        if left < 0:
            raise TooManyDescriptions
        for field in fields:
            inner = field.message_type
            if inner is not None and inner.full_name not in seen:
                seen.add(inner.full_name)
                waiting.append(inner)


def is_required(field: Any) -> bool:
    """Return whether a field is required (proto2)."""
    found = getattr(field, "is_required", None)  # since protobuf 6.31, which deprecates labels
    return bool(field.label == field.LABEL_REQUIRED if found is None else found)


def _kind_of(field: Any) -> FieldContent:
    message = field.message_type
    if message is not None:
        return FieldContent(message, _OF_FIELD + cost_of_message(message), False)
    are_copied = {
        *(field.TYPE_STRING, field.TYPE_BYTES, field.TYPE_DOUBLE, field.TYPE_FLOAT),
        *(field.TYPE_FIXED64, field.TYPE_FIXED32, field.TYPE_SFIXED64, field.TYPE_SFIXED32),
    }
    return _BYTES if field.type in are_copied else _PACKED


def _is_native() -> bool:
    return str(import_module("google.protobuf.internal.api_implementation").Type()) != "python"
