"""Finds the fields of Protobuf messages with their tags, and removes encrypted fields' constraints from a file."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from sluicegate.validation.rules.schemas.changed_fields import ChangeableField
from sluicegate.validation.rules.schemas.field_tags import FieldChange, protobuf_tags

_CONSTRAINTS: Final = 1159  # buf.validate's extensions of options
_NOT_VARINT: Final = {1: 8, 5: 4}


def fields_of(messages: Iterable[Any]) -> Iterator[ChangeableField]:
    """Yield the fields of message types, and of the types of their fields."""
    waiting, seen = list(messages), set[str]()
    while waiting:
        message = waiting.pop()
        if message.full_name in seen:
            continue
        seen.add(message.full_name)
        for field in message.fields:
            yield ChangeableField(field.full_name, field.name, protobuf_tags(field), field.message_type is not None)
            if field.message_type is not None:
                waiting.append(field.message_type)


def remove_constraints(files: Any, changes: Sequence[FieldChange]) -> None:
    """Remove the constraints of fields that `changes` encrypt, and of messages with options that mention such a field.

    Modifies `files`, a FileDescriptorSet.
    """
    appliers = [each.applies_to() for each in changes]
    for file in files.file if appliers else ():
        for message, full_name in _messages(file.message_type, file.package):
            encrypted = [
                field
                for field in message.field
                if any(applies(f"{full_name}.{field.name}", protobuf_tags(field)) for applies in appliers)
            ]
            for each in encrypted:
                _remove(each)
            if any(each.name.encode() in message.options.SerializeToString() for each in encrypted):
                _remove(message)


def _messages(messages: Iterable[Any], package: str) -> Iterator[tuple[Any, str]]:
    for message in messages:
        full_name = f"{package}.{message.name}" if package else message.name
        yield message, full_name
        yield from _messages(message.nested_type, full_name)


def _remove(described: Any) -> None:
    """Remove the constraints from a descriptor's options."""
    if described.HasField("options"):
        options = described.options.SerializeToString()
        kept = b"".join(field for number, field in _fields(options) if number != _CONSTRAINTS)
        described.options.ParseFromString(kept)


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and bytes of each field in a well-formed message without groups."""
    at = 0
    while at < len(message):
        begin = at
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind in _NOT_VARINT:
            at += _NOT_VARINT[kind]
        else:
            size, at = _varint(message, at)
            at += size if kind == 2 else 0  # length-delimited
        yield tag >> 3, message[begin:at]


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:  # the last byte
            return value, at
