"""A Protobuf schema as a rule asks it, from a FileDescriptorSet: what protoc writes with --descriptor_set_out."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from sluicegate.validation.rules.content import Content, SchemaUnusable
from sluicegate.validation.rules.protobuf_weight import WORDS, ProtobufWeight
from sluicegate.validation.rules.rule import CONSTANT_STEPS

_MOST_INDEXES = 100
_MAX_SHIFT = 28


class ProtobufContent:
    """Bytes are one message. Fields that the schema does not have are taken, as Protobuf's own readers take them."""

    is_slow = False

    def __init__(self, message_class: Any) -> None:
        self._new = message_class
        self._full_name = str(message_class.DESCRIPTOR.full_name)
        self._weight = ProtobufWeight(message_class.DESCRIPTOR)
        self._unreadable = import_module("google.protobuf.message").DecodeError

    def record_name(self, _data: bytes) -> str | None:
        return self._full_name

    def steps(self, _data: bytes) -> int:
        """What is expensive is bounded by itself."""
        return CONSTANT_STEPS

    def fault(self, data: bytes) -> str | None:
        if self._weight.is_too_heavy(data):
            return f"is {WORDS}"
        message = self._new()
        try:
            message.ParseFromString(data)
        except self._unreadable:
            return f"is not Protobuf of its schema: it cannot be read as {self._full_name}; was it written with it?"
        if not message.IsInitialized():
            missing = ", ".join(message.FindInitializationErrors()[:5])
            return f"is not Protobuf of its schema: {self._full_name} lacks required fields: {missing[:200]}"
        return None

    def explanation(self, _data: bytes) -> str | None:
        """Its fault is all of it."""
        return None


class IndexedProtobufContent:
    """Bytes are the path to a message in a file, as Confluent's serializer puts it before the data, and that message.

    The path is how many steps it has and each step, zig-zag varints: the place among the file's messages, then among
    that message's own. A zero alone stands for the first message.
    """

    is_slow = False

    def __init__(self, messages: dict[tuple[int, ...], ProtobufContent]) -> None:
        self._messages = messages

    def record_name(self, data: bytes) -> str | None:
        found = self._find(data)
        return None if found is None else found[0].record_name(b"")

    def steps(self, _data: bytes) -> int:
        """What is expensive is bounded by itself."""
        return CONSTANT_STEPS

    def fault(self, data: bytes) -> str | None:
        found = self._find(data)
        if found is None:
            return "is not Protobuf of its schema: the message indexes before it lead to no message of it"
        content, begins = found
        return content.fault(data[begins:])

    def explanation(self, _data: bytes) -> str | None:
        """Its fault is all of it."""
        return None

    def _find(self, data: bytes) -> tuple[ProtobufContent, int] | None:
        """The message that is named, and where it begins."""
        steps = _varint(data, 0)
        if steps is None or not 0 <= steps[0] <= _MOST_INDEXES:
            return None
        count, at = steps
        path: list[int] = []
        for _ in range(count):
            step = _varint(data, at)
            if step is None:
                return None
            path.append(step[0])
            at = step[1]
        content = self._messages.get(tuple(path) or (0,))
        return None if content is None else (content, at)


def protobuf_content(descriptor_set: bytes, message: str) -> ProtobufContent:
    """The message of that full name. Raises SchemaUnusable."""
    pool, files = _pool_of(descriptor_set)
    try:
        return ProtobufContent(_class_of(pool.FindMessageTypeByName(message)))
    except KeyError:
        names = sorted(content.full_name for file in files for _, content in _messages_of(file, pool))
        some = ", ".join(names[:10])
        raise SchemaUnusable(f"it has no message {message[:200]}; it has {some or 'none'}") from None


def indexed_protobuf_content(descriptor_set: bytes) -> Content:
    """All messages of the set's last file, which is the schema; those before it are what it imports.

    Raises SchemaUnusable.
    """
    pool, files = _pool_of(descriptor_set)
    if not files:
        raise SchemaUnusable("it has no messages")
    return IndexedProtobufContent(
        {path: ProtobufContent(_class_of(descriptor)) for path, descriptor in _messages_of(files[-1], pool)}
    )


def _pool_of(descriptor_set: bytes) -> tuple[Any, list[Any]]:
    try:
        descriptor_pb2 = import_module("google.protobuf.descriptor_pb2")
        pool = import_module("google.protobuf.descriptor_pool").DescriptorPool()
    except ImportError:
        raise SchemaUnusable("Protobuf needs protobuf: pip install 'sluicegate[rules]'") from None
    files = descriptor_pb2.FileDescriptorSet()
    try:
        files.ParseFromString(descriptor_set)
        for file in files.file:
            pool.Add(file)
        found = [pool.FindFileByName(file.name) for file in files.file]
    except Exception as error:  # DecodeError, and TypeError or KeyError of what it imports and does not have
        raise SchemaUnusable(
            f"it is no FileDescriptorSet that can be used (protoc --include_imports --descriptor_set_out=FILE): "
            f"{str(error)[:200]}"
        ) from error
    return pool, found


def _class_of(descriptor: Any) -> Any:
    return import_module("google.protobuf.message_factory").GetMessageClass(descriptor)


def _messages_of(file: Any, pool: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Each message of a file with its path; those of maps are no one's to name, but have their places."""
    prefix = f"{file.package}." if file.package else ""
    described = import_module("google.protobuf.descriptor_pb2").FileDescriptorProto()
    file.CopyToProto(described)
    waiting: list[tuple[tuple[int, ...], str, Any]] = []
    waiting += [((i,), prefix + message.name, message) for i, message in enumerate(described.message_type)]
    while waiting:
        path, name, message = waiting.pop()
        yield path, pool.FindMessageTypeByName(name)
        waiting += [((*path, i), f"{name}.{inner.name}", inner) for i, inner in enumerate(message.nested_type)]


def _varint(data: bytes, at: int) -> tuple[int, int] | None:
    """A zig-zag number and where it ends; None where there is none."""
    value = shift = 0
    while at < len(data) and shift <= _MAX_SHIFT:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
    return None
