"""Reads how each registry's serializers name the message of a Protobuf file: in bytes between the id and the data."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

_MOST_INDEXES = 100
_MOST_NAME_BYTES = 1000
_MAX_SHIFT = 28
_NAME_TAG = 0x0A  # field 1, length-delimited

Key = tuple[int | str, ...]
FIRST_MESSAGE: Key = (0,)
"""The key of a file's first message, by its path."""


class MessageNaming(Enum):
    """The ways in which serializers name a message. The value is the error message for data that name none.

    OPTIONAL_INDEXES is for the serializers of Confluent and of kafkajs. The latter omit the indexes of the first
    message.
    """

    CONFLUENT = "the message indexes before it do not select a message of the schema"
    OPTIONAL_INDEXES = "it has no message"
    GLUE = "the message index before it does not select a message of the schema"
    APICURIO = "the message name before it, or in a header, is not that of a message of the schema"


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message in a file.

    `counting` is its path if map entries count as nested messages. `skipping` is its path if they do not.
    """

    descriptor: Any
    counting: tuple[int, ...]
    skipping: tuple[int, ...]

    @property
    def is_map_entry(self) -> bool:
        """Return whether the message is the entry of a map field, which no serializer names."""
        return bool(self.descriptor.GetOptions().map_entry)


@dataclass(frozen=True, slots=True)
class NamedMessages:
    """Descriptors by key. `read` returns the key in the data and the start of the message, or None without a key."""

    naming: MessageNaming
    by_key: Mapping[Key, Sequence[Any]]
    read: Callable[[bytes], tuple[Key, int] | None]


def named_messages(naming: MessageNaming, found: Iterable[FoundMessage]) -> NamedMessages:
    """Return the messages in a file, by the names that serializers give them. `found` includes map entries."""
    by_key, read = _NAMINGS[naming]
    return NamedMessages(naming, by_key(list(found)), read)


def _by_path(found: Sequence[FoundMessage]) -> dict[Key, list[Any]]:
    """Return the messages by path. If a path is ambiguous, the message that it names without map entries comes first.

    Confluent's serializer for Python counts the entries of map fields as nested messages; its serializer for Java does
    not.
    """
    messages = [each for each in found if not each.is_map_entry]
    by_key: dict[Key, list[Any]] = {}
    for each in messages:
        by_key.setdefault(each.skipping, []).append(each.descriptor)
    for each in messages:
        if each.counting != each.skipping:
            by_key.setdefault(each.counting, []).append(each.descriptor)
    return by_key


def _by_position(found: Sequence[FoundMessage]) -> dict[Key, list[Any]]:
    """Return the messages by their position in the order of full names. Map entries count."""
    in_order = sorted(found, key=lambda each: str(each.descriptor.full_name))
    return {(i,): [each.descriptor] for i, each in enumerate(in_order) if not each.is_map_entry}


def _by_name(found: Sequence[FoundMessage]) -> dict[Key, list[Any]]:
    """Return the messages by their short name, which Apicurio's serializer writes. Outer messages come first."""
    by_key: dict[Key, list[Any]] = {}
    for each in sorted(found, key=lambda each: len(each.counting)):
        if not each.is_map_entry:
            by_key.setdefault((str(each.descriptor.name),), []).append(each.descriptor)
    return by_key


def _read_path(data: bytes) -> tuple[Key, int] | None:
    """Read the number of steps and each step, as zigzag varints. A single zero means the first message."""
    count = _zig_zag(data, 0)
    if count is None or not 0 <= count[0] <= _MOST_INDEXES:
        return None
    steps, at = count
    path: list[int] = []
    for _ in range(steps):
        step = _zig_zag(data, at)
        if step is None:
            return None
        path.append(step[0])
        at = step[1]
    return tuple(path) or (0,), at


def _read_position(data: bytes) -> tuple[Key, int] | None:
    found = _varint(data, 0)
    return None if found is None else ((found[0],), found[1])


def _read_name(data: bytes) -> tuple[Key, int] | None:
    """Read a message that is preceded by its length and contains a name as field 1 (Apicurio's `Ref`)."""
    size = _varint(data, 0)
    if size is None or size[0] > _MOST_NAME_BYTES or data[size[1] : size[1] + 1] != bytes([_NAME_TAG]):
        return None
    end = size[1] + size[0]
    name = _varint(data, size[1] + 1)
    if name is None or name[1] + name[0] != end or end > len(data):
        return None
    return (data[name[1] : end].decode(errors="replace"),), end


def encoded_name(name: bytes) -> bytes:
    """Return a name as Apicurio's serializer writes it before the data, if it does not write it to a header."""
    name = name[:_MOST_NAME_BYTES]
    field = bytes([_NAME_TAG]) + _as_varint(len(name)) + name
    return _as_varint(len(field)) + field


_NAMINGS = {
    MessageNaming.CONFLUENT: (_by_path, _read_path),
    MessageNaming.OPTIONAL_INDEXES: (_by_path, _read_path),
    MessageNaming.GLUE: (_by_position, _read_position),
    MessageNaming.APICURIO: (_by_name, _read_name),
}


def _zig_zag(data: bytes, at: int) -> tuple[int, int] | None:
    found = _varint(data, at)
    return None if found is None else ((found[0] >> 1) ^ -(found[0] & 1), found[1])


def _varint(data: bytes, at: int) -> tuple[int, int] | None:
    """Return a number and its end, or None if there is none."""
    value = shift = 0
    while at < len(data) and shift <= _MAX_SHIFT:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return None


def _as_varint(number: int) -> bytes:
    written = bytearray()
    while number >= 0x80:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)
