"""Checks content against a Protobuf schema, given as a FileDescriptorSet (protoc --descriptor_set_out)."""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from sluicegate.validation.rules.cel.rule import IsTrue, record_with
from sluicegate.validation.rules.cel.runtime import Dialect, ExpressionUnusable
from sluicegate.validation.rules.protobuf.cel_values import ProtobufValues
from sluicegate.validation.rules.protobuf.cost import ProtobufCost, is_required
from sluicegate.validation.rules.rule import CONSTANT_STEPS, RuledRecord, SchemaError
from sluicegate.validation.rules.schemas.content import Content, ExpressionOfSchema, SchemaUnusable

_MOST_LOOKS = 2_000  # about 2 ms
_MOST_LEVELS = 10  # each level is searched again


def first_missing(message: Any) -> str | None:
    """Return the path of the first missing required field, such as `lines[3].sku`;

    None if it is too deep or too far.
    """
    looks = 0
    waiting: list[tuple[Any, str]] = [(message, "")]
    while waiting:
        part, path = waiting.pop()
        looks += len(part.DESCRIPTOR.fields)
        if looks > _MOST_LOOKS or path.count(".") > _MOST_LEVELS:
            return None
        if not part.IsInitialized():
            for field in part.DESCRIPTOR.fields:
                if is_required(field) and not part.HasField(field.name):
                    return f"{path}{field.name}"
            waiting += reversed(_inner(part, path, _MOST_LOOKS - looks))
    return None


def _inner(message: Any, path: str, most: int) -> list[tuple[Any, str]]:
    """Return the first `most` direct inner messages."""
    found: list[tuple[Any, str]] = []
    for field, value in message.ListFields():
        if field.message_type is None or len(found) >= most:
            continue
        name = f"{path}{field.name}"
        if field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].message_type is not None:
                found += [(one, f"{name}[…].") for one, _ in zip(value.values(), range(most), strict=False)]
        elif hasattr(value, "DESCRIPTOR"):
            found.append((value, f"{name}."))
        else:
            found += [(one, f"{name}[{i}].") for i, one in enumerate(value[:most])]
    return found


_MOST_INDEXES = 100
_MOST_EXPRESSIONS = 20  # compiled, for a schema; each takes up to 200 kB
_MAX_SHIFT = 28
_OF_INTERPRETED = (ValueError, IndexError, ArithmeticError, RecursionError, struct.error)
# About 3 ms.
_EXPLANATION_STEPS = 30_000


class ProtobufContent:
    """Bytes are one message. Unknown fields are accepted, as by Protobuf's own readers."""

    is_slow = False

    def __init__(self, message_class: Any) -> None:
        self._new = message_class
        self._full_name = str(message_class.DESCRIPTOR.full_name)
        self._cost = ProtobufCost(message_class.DESCRIPTOR)
        self._may_lack_fields = self._cost.may_lack_fields
        # The interpreted library also raises Python's own errors, for a text that is not UTF-8 or a cut number.
        self._unreadable = (import_module("google.protobuf.message").DecodeError, *_OF_INTERPRETED)

    def record_name(self, _data: bytes) -> str | None:
        return self._full_name

    def steps(self, data: bytes) -> int:
        """Return an upper bound of the steps that `fault` takes."""
        return self._cost.steps(data)

    def fault(self, data: bytes) -> str | None:
        message = self._new()
        try:
            message.ParseFromString(data)
        except self._unreadable:
            return f"is not Protobuf of its schema: it cannot be read as {self._full_name}; was it written with it?"
        if self._may_lack_fields and not message.IsInitialized():
            return f"is not Protobuf of its schema: {self._full_name} lacks required fields"
        return None

    def expression(self, text: str) -> IsTrue:
        """Return an expression over the message. Raises ExpressionUnusable."""
        return IsTrue(text, ProtobufValues(self._new.DESCRIPTOR, self.steps, self.fault))

    def condition(self, text: str) -> IsTrue:
        """Return a registry's condition on the message. Raises ExpressionUnusable."""
        return IsTrue(text, ProtobufValues(self._new.DESCRIPTOR, self.steps, self.fault, Dialect.CONDITION))

    def explanation(self, data: bytes) -> str | None:
        """Return the first missing required field; None if there is none, or if it is nested too deep."""
        if not self._may_lack_fields or self._cost.steps(data) > _EXPLANATION_STEPS:
            return None
        message = self._new()
        try:
            message.ParseFromString(data)
        except self._unreadable:
            return None
        missing = first_missing(message)
        if missing is None:
            return None
        return f"is not Protobuf of its schema: {self._full_name} lacks the required field {missing[:200]}"


class IndexedProtobufContent:
    """Bytes are the path to a message type in a file, as Confluent's serializers write it, and that message.

    The path is the number of steps and each step, as zig-zag varints: the index among the file's messages, then among
    that message's nested messages. A single zero means the first message. Python's serializer counts the entries of
    map fields as nested messages, Java's does not. So a path may name two messages, and data of either are accepted.
    """

    is_slow = False

    def __init__(self, messages: Mapping[tuple[int, ...], Sequence[Any]]) -> None:
        """`messages`: descriptors by path; classes are created on first use."""
        self._messages = messages
        self._contents: dict[tuple[int, ...], tuple[ProtobufContent, ...]] = {}

    def record_name(self, data: bytes) -> str | None:
        found = self._find(data)
        if found is None:
            return None
        contents, begins = found
        if len(contents) == 1:
            return contents[0].record_name(b"")
        body = data[begins:]
        return next((each for each in contents if each.fault(body) is None), contents[0]).record_name(b"")

    def steps(self, data: bytes) -> int:
        """Return an upper bound of the steps that `fault` takes."""
        found = self._find(data)
        if found is None:
            return CONSTANT_STEPS
        contents, begins = found
        return sum(each.steps(data[begins:]) for each in contents)

    def fault(self, data: bytes) -> str | None:
        found = self._find(data)
        if found is None:
            return "is not Protobuf of its schema: the message indexes before it lead to no message of it"
        contents, begins = found
        body = data[begins:]
        faults = [each.fault(body) for each in contents]
        return None if None in faults else faults[0]

    def expression(self, text: str) -> ExpressionOfSchema:
        """Return an expression over the message that the data names."""
        return _IndexedExpression(lambda content: content.expression(text), self._find)

    def condition(self, text: str) -> ExpressionOfSchema:
        """Return a registry's condition on the message that the data names."""
        return _IndexedExpression(lambda content: content.condition(text), self._find)

    def explanation(self, data: bytes) -> str | None:
        """Return the explanation of the named message."""
        found = self._find(data)
        return None if found is None else found[0][0].explanation(data[found[1] :])

    def _find(self, data: bytes) -> tuple[tuple[ProtobufContent, ...], int] | None:
        """Return the contents of the named messages, and where the message begins."""
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
        contents = self._contents_of(tuple(path) or (0,))
        return (contents, at) if contents else None

    def _contents_of(self, path: tuple[int, ...]) -> tuple[ProtobufContent, ...]:
        contents = self._contents.get(path)
        if contents is None:
            contents = tuple(ProtobufContent(_class_of(each)) for each in self._messages.get(path, ()))
            if contents:
                self._contents[path] = contents
        return contents


class _IndexedExpression:
    """An expression over the messages of a file. It is compiled for each message type on first use.

    If the data may name several types, the first one that they follow counts.
    """

    def __init__(
        self,
        compile_for: Callable[[ProtobufContent], IsTrue],
        find: Callable[[bytes], tuple[tuple[ProtobufContent, ...], int] | None],
    ) -> None:
        self._compile_for = compile_for
        self._find = find
        self._by_message: dict[ProtobufContent, IsTrue | ExpressionUnusable] = {}

    def steps(self, record: RuledRecord) -> int:
        """Return the steps for all types that the data may name."""
        steps, (contents, body) = CONSTANT_STEPS, self._found(record)
        for content in contents:
            rule = self._rule_of(content)
            steps += content.steps(body)
            if isinstance(rule, IsTrue):
                steps += rule.steps(record_with(record, body))
        return steps

    def complaint(self, record: RuledRecord) -> str | None:
        """Return the fault of a record, or None. Raises SchemaError if the message lacks a field."""
        contents, body = self._found(record)
        content = next((each for each in contents if each.fault(body) is None), None)
        if content is None:
            return None  # the rule about the schema reports it
        rule = self._rule_of(content)
        if isinstance(rule, ExpressionUnusable):
            raise SchemaError(f"the expression does not fit it: {rule}")
        return rule.complaint(record_with(record, body))

    def _found(self, record: RuledRecord) -> tuple[tuple[ProtobufContent, ...], bytes]:
        data = record.value or b""
        found = self._find(data)
        return ((), b"") if found is None else (found[0], data[found[1] :])

    def _rule_of(self, content: ProtobufContent) -> IsTrue | ExpressionUnusable:
        rule = self._by_message.get(content)
        if rule is None:
            try:
                rule = self._compile_for(content)
            except ExpressionUnusable as error:
                rule = error
            if len(self._by_message) >= _MOST_EXPRESSIONS:  # the data names the message
                self._by_message.clear()
            self._by_message[content] = rule
        return rule


def protobuf_content(descriptor_set: bytes, message: str) -> ProtobufContent:
    """Return the content for a message by its full name. Raises SchemaUnusable."""
    pool, files = _pool_of(descriptor_set)
    try:
        return ProtobufContent(_class_of(pool.FindMessageTypeByName(message)))
    except KeyError:
        names = sorted(message.full_name for file in files for message, _ in _messages_of(file, pool))
        some = ", ".join(names[:10])
        raise SchemaUnusable(f"it has no message {message[:200]}; it has {some or 'none'}") from None


def indexed_protobuf_content(descriptor_set: bytes) -> Content:
    """Return the content for all messages of the last file of the set; the earlier files are its imports.

    Raises SchemaUnusable.
    """
    pool, files = _pool_of(descriptor_set)
    if not files:
        raise SchemaUnusable("it has no messages")
    return IndexedProtobufContent(_by_path(_messages_of(files[-1], pool)))


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
    except Exception as error:  # DecodeError, and TypeError or KeyError for missing imports
        raise SchemaUnusable(
            f"it is no FileDescriptorSet that can be used (protoc --include_imports --descriptor_set_out=FILE): "
            f"{str(error)[:200]}"
        ) from error
    return pool, found


def _class_of(descriptor: Any) -> Any:
    return import_module("google.protobuf.message_factory").GetMessageClass(descriptor)


@dataclass(frozen=True, slots=True)
class _Paths:
    """The paths to one message. `counting`: map entries count as nested messages; `skipping`: they do not."""

    counting: tuple[int, ...]
    skipping: tuple[int, ...]


def _messages_of(file: Any, pool: Any) -> Iterator[tuple[Any, _Paths]]:
    """Yield the descriptor of each message of a file, except map entries."""
    prefix = f"{file.package}." if file.package else ""
    described = import_module("google.protobuf.descriptor_pb2").FileDescriptorProto()
    file.CopyToProto(described)
    waiting = [(prefix + each.name, each, _Paths((i,), (i,))) for i, each in enumerate(described.message_type)]
    while waiting:
        name, message, paths = waiting.pop()
        yield pool.FindMessageTypeByName(name), paths
        skipped = 0
        for i, inner in enumerate(message.nested_type):
            if inner.options.map_entry:
                skipped += 1
            else:
                inner_paths = _Paths((*paths.counting, i), (*paths.skipping, i - skipped))
                waiting.append((f"{name}.{inner.name}", inner, inner_paths))


def _by_path(messages: Iterator[tuple[Any, _Paths]]) -> dict[tuple[int, ...], list[Any]]:
    """Return the messages that each path may name, first the one of the serializers that count no map entries."""
    found: dict[tuple[int, ...], list[Any]] = {}
    listed = list(messages)
    for message, paths in listed:
        found.setdefault(paths.skipping, []).append(message)
    for message, paths in listed:
        if paths.counting != paths.skipping:
            found.setdefault(paths.counting, []).append(message)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int] | None:
    """Return a zig-zag number and where it ends; None if there is none."""
    value = shift = 0
    while at < len(data) and shift <= _MAX_SHIFT:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
    return None
