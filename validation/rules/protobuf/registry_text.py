"""Reads Protobuf schemas in the forms that registries use: .proto text, or an encoded descriptor.

Confluent's serializers register a FileDescriptorProto in base64, which a registry may return unchanged. Before 2024,
registries converted descriptors to .proto text that contains `option map_entry = true`, which protoc rejects.
"""

import re
from base64 import b64decode
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

_BASE64: Final = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")
# Replaces the option in the text that protoc compiles. protoc keeps reserved names in the descriptor.
_MARK: Final = "sluicegate_map_entry"
_OPTION: Final = "option"
# Comments and strings are matched so that the option is not found inside them.
_TOKENS: Final = (
    r"""//[^\n]*|/\*(?s:.*?)\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\boption\s+map_entry\s*=\s*true\s*;"""
)
_NEWER_EDITION: Final = re.compile(r"is later than the maximum (supported )?edition")
_NEWER_ADVICE: Final = (
    "the versions of protobuf and grpcio-tools that PySpark supports accept no later edition: register the schema with "
    "edition 2023"
)
_KEY_FIELD, _VALUE_FIELD = 1, 2


def with_edition_advice(words: str) -> str:
    """Return an error from the compiler or the library. If it is about a newer edition, advice is appended."""
    return f"{words}; {_NEWER_ADVICE}" if _NEWER_EDITION.search(words) else words


def encoded_file(name: str, text: str) -> bytes | None:
    """Decode `text` from base64 to a serialized FileDescriptorProto, and rename it to `name`.

    Returns None if `text` is not the base64 of one.
    """
    if not _BASE64.fullmatch(text):
        return None
    file = import_module("google.protobuf.descriptor_pb2").FileDescriptorProto()
    try:
        file.ParseFromString(b64decode("".join(text.split()), validate=True))
    except Exception:  # binascii.Error, and DecodeError from a library that may be missing
        return None
    file.name = name
    return bytes(file.SerializeToString())


def with_marked_map_entries(text: str) -> str:
    """Return .proto text with each `option map_entry = true` replaced by a mark that protoc accepts."""
    if "map_entry" not in text:
        return text
    import re2  # noqa: PLC0415  # linear in time; with its C++ library it is 3 MB

    replaced: str = re2.sub(_TOKENS, _marked, text)
    return replaced


def _marked(found: Any) -> str:
    token: str = found.group()
    return f'reserved "{_MARK}";' if token.startswith(_OPTION) else token


def with_map_entries(descriptor_set: bytes) -> bytes:
    """Return a FileDescriptorSet in which marked messages are map entries.

    A marked message that cannot be a map entry stays an ordinary message, because its encoding is the same.
    """
    if _MARK.encode() not in descriptor_set:
        return descriptor_set
    files = import_module("google.protobuf.descriptor_pb2").FileDescriptorSet()
    files.ParseFromString(descriptor_set)
    for file in files.file:
        for parent, name, message in all_messages(file):
            if _MARK in message.reserved_name:
                message.reserved_name.remove(_MARK)
                if parent is not None and _can_be_entry(parent, name, message):
                    message.options.map_entry = True
    return bytes(files.SerializeToString())


def all_messages(file: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield each message in a FileDescriptorProto, with its outer message (or None) and its full name."""
    prefix = f".{file.package}" if file.package else ""
    waiting = [(None, f"{prefix}.{message.name}", message) for message in file.message_type]
    while waiting:
        parent, name, message = waiting.pop()
        yield parent, name, message
        waiting += [(message, f"{name}.{inner.name}", inner) for inner in message.nested_type]


def _can_be_entry(parent: Any, name: str, message: Any) -> bool:
    """Return whether a message has the same form as the entry that protoc generates for a map field of `parent`."""
    fields = list(message.field)
    if [field.number for field in fields] != [_KEY_FIELD, _VALUE_FIELD] or message.oneof_decl:
        return False
    key = fields[0]
    of_keys = {
        *(key.TYPE_INT64, key.TYPE_UINT64, key.TYPE_INT32, key.TYPE_UINT32, key.TYPE_SINT32, key.TYPE_SINT64),
        *(key.TYPE_FIXED64, key.TYPE_FIXED32, key.TYPE_SFIXED64, key.TYPE_SFIXED32, key.TYPE_BOOL, key.TYPE_STRING),
    }
    if key.type not in of_keys or any(field.label != field.LABEL_OPTIONAL for field in fields):
        return False
    return any(field.type_name == name and field.label == field.LABEL_REPEATED for field in parent.field)
