"""How much Protobuf's reader would make of bytes: bounded before it begins.

It keeps the interpreter from its first byte to its last. Eight million bytes may be a picture, or a million entries of
a map, which take half a second in which nobody else goes on. Compiled with the types in protobuf_weight.pxd where a C
compiler was at hand.
"""

from typing import Any

MOST_WEIGHT = 500_000
"""A map's entry weighs ten, any other message two, a field one, eight bytes of packed numbers one: some 15 ms."""

WORDS = f"Protobuf of more fields than rules read ({MOST_WEIGHT:,}, of which a map's entries count ten each)"

_MOST_WEIGHT = MOST_WEIGHT  # typed in the .pxd, which hides a name from other modules
_OF_ENTRY, _OF_MESSAGE, _OF_FIELD = 10, 2, 1
_PACKED_BYTES = 8
# Below it the reader takes at most some 25 ms, whatever the bytes are.
_LIGHT_BYTES = 512 << 10
# Wire types (https://protobuf.dev/programming-guides/encoding/#structure); those of groups hold nothing themselves.
_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
_MOST_DEPTH = 100  # as the reader itself
_LAST_SHIFT = 63
_CONTINUES = 0x80


class Kind:
    """What a field that has a length holds: a message of that descriptor, packed varints, or (neither) mere bytes."""

    def __init__(self, message: Any, weight: int, is_packed: bool) -> None:
        self.message = message
        self.weight = weight
        self.is_packed = is_packed
        self.fields: dict[int, Kind] | None = None


_BYTES = Kind(None, _OF_FIELD, False)
_PACKED = Kind(None, _OF_FIELD, True)


class ProtobufWeight:
    """Of messages of one descriptor."""

    def __init__(self, descriptor: Any) -> None:
        self._descriptor = descriptor
        self._kinds: dict[str, dict[int, Kind]] = {}

    def is_too_heavy(self, data: bytes) -> bool:
        """Whether a message weighs more than MOST_WEIGHT. What is malformed is weighed up to there."""
        if len(data) <= _LIGHT_BYTES:
            return False
        return _Walk(data, self._kinds).weighs_more(_kinds_of(self._descriptor, self._kinds))


class _Walk:
    """Over one message and all within it."""

    def __init__(self, data: bytes, known: dict[str, dict[int, Kind]]) -> None:
        self._data = data
        self._known = known
        self._at = 0

    def weighs_more(self, kinds: dict[int, Kind]) -> bool:
        weight = 0
        end = len(self._data)
        outer: list[tuple[int, dict[int, Kind]]] = []
        while weight <= _MOST_WEIGHT:
            if self._at >= end:
                if not outer:
                    return False
                end, kinds = outer.pop()
                continue
            tag = self._varint(end)
            wire_type = tag & 7
            if wire_type == _LENGTH:
                size = self._varint(end)
                if size < 0 or size > end - self._at:
                    return False  # cut short, so the reader ends here too
                kind = kinds.get(tag >> 3, _BYTES)
                weight += kind.weight + (size // _PACKED_BYTES if kind.is_packed else 0)
                if kind.message is not None and len(outer) < _MOST_DEPTH:
                    outer.append((end, kinds))
                    end = self._at + size
                    if kind.fields is None:
                        kind.fields = _kinds_of(kind.message, self._known)
                    kinds = kind.fields
                else:
                    self._at += size
                continue
            weight += _OF_FIELD
            if wire_type == _VARINT:
                self._varint(end)
            elif wire_type == _EIGHT_BYTES:
                self._at += 8
            elif wire_type == _FOUR_BYTES:
                self._at += 4
            elif wire_type > _FOUR_BYTES:
                return False
        return True

    def _varint(self, end: int) -> int:
        """The number; where it is cut short, what there is of it."""
        value = shift = 0
        while self._at < end:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & (_CONTINUES - 1)) << shift
            if byte < _CONTINUES or shift >= _LAST_SHIFT:
                break
            shift += 7
        return value


def _kinds_of(descriptor: Any, known: dict[str, dict[int, Kind]]) -> dict[int, Kind]:
    """A message's fields, by number: made when it is first met, for a schema may have thousands."""
    kinds = known.get(descriptor.full_name)
    if kinds is None:
        kinds = known[descriptor.full_name] = {field.number: _kind_of(field) for field in descriptor.fields}
    return kinds


def _kind_of(field: Any) -> Kind:
    message = field.message_type
    if message is not None:
        return Kind(message, _OF_ENTRY if message.GetOptions().map_entry else _OF_MESSAGE, False)
    are_copied = {
        *(field.TYPE_STRING, field.TYPE_BYTES, field.TYPE_DOUBLE, field.TYPE_FLOAT),
        *(field.TYPE_FIXED64, field.TYPE_FIXED32, field.TYPE_SFIXED64, field.TYPE_SFIXED32),
    }
    return _BYTES if field.type in are_copied else _PACKED
