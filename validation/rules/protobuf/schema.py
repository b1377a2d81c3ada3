"""Checks content against a Protobuf schema, given as a FileDescriptorSet (protoc --descriptor_set_out)."""

import struct
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from sluicegate.validation.rules.cel.fields import TrueOfFields
from sluicegate.validation.rules.cel.rule import IsTrue, record_with
from sluicegate.validation.rules.cel.runtime import Dialect
from sluicegate.validation.rules.protobuf.cel_values import ProtobufFields, ProtobufValues
from sluicegate.validation.rules.protobuf.constraints import Constraints, MeetsMessageConstraints
from sluicegate.validation.rules.protobuf.cost import ProtobufCost, is_required
from sluicegate.validation.rules.protobuf.json_form import ProtobufJson
from sluicegate.validation.rules.protobuf.message_names import (
    FoundMessage,
    Key,
    MessageNaming,
    NamedMessages,
    named_messages,
)
from sluicegate.validation.rules.rule import CONSTANT_STEPS, RuledRecord, RuleUnusable, SchemaError
from sluicegate.validation.rules.schemas.conditions import Condition
from sluicegate.validation.rules.schemas.content import Content, ExpressionOfSchema, SchemaUnusable
from sluicegate.validation.rules.schemas.follows_as_json import FollowsAsJson

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


_MOST_EXPRESSIONS = 20  # compiled, for a schema; each takes up to 200 kB
_OF_INTERPRETED = (ValueError, IndexError, ArithmeticError, RecursionError, struct.error)
# About 3 ms.
_EXPLANATION_STEPS = 30_000


class ProtobufContent:
    """Bytes are one message. Unknown fields are accepted, as by Protobuf's own readers."""

    is_slow = False

    def __init__(self, message_class: Any) -> None:
        self._new = message_class
        self.descriptor = message_class.DESCRIPTOR
        self._full_name = str(message_class.DESCRIPTOR.full_name)
        self._cost = ProtobufCost(message_class.DESCRIPTOR)
        self._may_lack_fields = self._cost.may_lack_fields
        # The interpreted library also raises Python's own errors, for a text that is not UTF-8 or a cut number.
        self._unreadable = (import_module("google.protobuf.message").DecodeError, *_OF_INTERPRETED)

    def record_name(self, _data: bytes) -> str | None:
        return self._full_name

    def named(self, _data: bytes) -> "tuple[tuple[ProtobufContent, ...], int]":
        """Return the only message type, and that its message begins with the data."""
        return (self,), 0

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

    def condition(self, condition: Condition) -> ExpressionOfSchema:
        """Return a registry's condition on the message. Raises ExpressionUnusable."""
        if condition.is_about_fields:
            return TrueOfFields(condition, ProtobufFields(self._new, self.steps, self.fault))
        values = ProtobufValues(self._new.DESCRIPTOR, self.steps, self.fault, Dialect.CONDITION)
        return IsTrue(condition.expression, values)

    def constraints(self) -> ExpressionOfSchema:
        """Return the `buf.validate` constraints of the message. Raises SchemaUnusable."""
        return MeetsMessageConstraints(Constraints([self._new]), self._new)

    def follows_as_json(self, json_schema: str) -> ExpressionOfSchema:
        """Return the condition that the message, as JSON, follows a JSON Schema. Raises SchemaUnusable."""
        from sluicegate.validation.rules.json.schema import json_schema_content  # noqa: PLC0415  # for such rules only

        form = ProtobufJson(self._new, self.steps, self.fault)
        return FollowsAsJson(json_schema_content(json_schema), form)

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
    """Bytes name a message type of a file, as a registry's serializers write it, and are that message.

    If they may name several types, data of each are accepted.
    """

    is_slow = False

    def __init__(self, messages: NamedMessages) -> None:
        """Classes of messages are created on first use."""
        self._messages = messages
        self._contents: dict[Key, tuple[ProtobufContent, ...]] = {}

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
            return f"is not Protobuf of its schema: {self._messages.naming.value}"
        contents, begins = found
        body = data[begins:]
        faults = [each.fault(body) for each in contents]
        return None if None in faults else faults[0]

    def expression(self, text: str) -> ExpressionOfSchema:
        """Return an expression over the message that the data names."""
        return _IndexedExpression(lambda content: content.expression(text), self._find)

    def condition(self, condition: Condition) -> ExpressionOfSchema:
        """Return a registry's condition on the message that the data names."""
        return _IndexedExpression(lambda content: content.condition(condition), self._find)

    def constraints(self) -> ExpressionOfSchema:
        """Return the `buf.validate` constraints of the message that the data names. Raises SchemaUnusable if those of
        any message of the file cannot be compiled.
        """
        named = (each for messages in self._messages.by_key.values() for each in messages)
        all_of_file = Constraints(map(_class_of, named))
        return _IndexedExpression(
            lambda content: MeetsMessageConstraints(all_of_file, _class_of(content.descriptor)), self._find
        )

    def follows_as_json(self, json_schema: str) -> ExpressionOfSchema:
        """Return the condition that the message that the data names, as JSON, follows a JSON Schema."""
        return _IndexedExpression(lambda content: content.follows_as_json(json_schema), self._find)

    def explanation(self, data: bytes) -> str | None:
        """Return the explanation of the named message."""
        found = self._find(data)
        return None if found is None else found[0][0].explanation(data[found[1] :])

    def named(self, data: bytes) -> tuple[tuple[ProtobufContent, ...], int]:
        """Return the message types that the data may name, and where the message begins; none if they lead nowhere."""
        return self._find(data) or ((), 0)

    def _find(self, data: bytes) -> tuple[tuple[ProtobufContent, ...], int] | None:
        """Return the contents of the named messages, and where the message begins."""
        named = self._messages.read(data)
        if named is None:
            return None
        contents = self._contents_of(named[0])
        return (contents, named[1]) if contents else None

    def _contents_of(self, key: Key) -> tuple[ProtobufContent, ...]:
        contents = self._contents.get(key)
        if contents is None:
            contents = tuple(ProtobufContent(_class_of(each)) for each in self._messages.by_key.get(key, ()))
            if contents:
                self._contents[key] = contents
        return contents


class _IndexedExpression:
    """An expression over the messages of a file. It is compiled for each message type on first use.

    If the data may name several types, the first one that they follow counts.
    """

    def __init__(
        self,
        compile_for: Callable[[ProtobufContent], ExpressionOfSchema],
        find: Callable[[bytes], tuple[tuple[ProtobufContent, ...], int] | None],
    ) -> None:
        self._compile_for = compile_for
        self._find = find
        self._by_message: dict[ProtobufContent, ExpressionOfSchema | RuleUnusable] = {}

    def steps(self, record: RuledRecord) -> int:
        """Return the steps for all types that the data may name."""
        steps, (contents, body) = CONSTANT_STEPS, self._found(record)
        for content in contents:
            rule = self._rule_of(content)
            steps += content.steps(body)
            if not isinstance(rule, RuleUnusable):
                steps += rule.steps(record_with(record, body))
        return steps

    def complaint(self, record: RuledRecord) -> str | None:
        """Return the fault of a record, or None. Raises SchemaError if the message lacks a field."""
        found = self._followed(record)
        if found is None:
            return None  # the rule about the schema reports it
        rule, bare = found
        if isinstance(rule, RuleUnusable):
            raise SchemaError(f"the expression does not fit it: {rule}")
        return rule.complaint(bare)

    def explanation(self, record: RuledRecord) -> str | None:
        """Return the explanation of the expression."""
        found = self._followed(record)
        return None if found is None or isinstance(found[0], RuleUnusable) else found[0].explanation(found[1])

    def _followed(self, record: RuledRecord) -> tuple[ExpressionOfSchema | RuleUnusable, RuledRecord] | None:
        """Return the expression for the type that the data follow, and the record with the message alone."""
        contents, body = self._found(record)
        if len(contents) != 1:
            contents = tuple(each for each in contents if each.fault(body) is None)[:1]
        return (self._rule_of(contents[0]), record_with(record, body)) if contents else None

    def _found(self, record: RuledRecord) -> tuple[tuple[ProtobufContent, ...], bytes]:
        data = record.value or b""
        found = self._find(data)
        return ((), b"") if found is None else (found[0], data[found[1] :])

    def _rule_of(self, content: ProtobufContent) -> ExpressionOfSchema | RuleUnusable:
        rule = self._by_message.get(content)
        if rule is None:
            try:
                rule = self._compile_for(content)
            except RuleUnusable as error:
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
        found = (each for file in files for each in _messages_of(file, pool) if not each.is_map_entry)
        names = sorted(each.descriptor.full_name for each in found)
        some = ", ".join(names[:10])
        raise SchemaUnusable(f"it has no message {message[:200]}; it has {some or 'none'}") from None


def indexed_protobuf_content(descriptor_set: bytes, naming: MessageNaming = MessageNaming.CONFLUENT) -> Content:
    """Return the content for all messages of the last file of the set; the earlier files are its imports.

    Raises SchemaUnusable.
    """
    pool, files = _pool_of(descriptor_set)
    if not files:
        raise SchemaUnusable("it has no messages")
    return IndexedProtobufContent(named_messages(naming, _messages_of(files[-1], pool)))


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


def _messages_of(file: Any, pool: Any) -> Iterator[FoundMessage]:
    """Yield each message of a file."""
    prefix = f"{file.package}." if file.package else ""
    described = import_module("google.protobuf.descriptor_pb2").FileDescriptorProto()
    file.CopyToProto(described)
    waiting: list[tuple[str, Any, tuple[int, ...], tuple[int, ...]]]
    waiting = [(prefix + each.name, each, (i,), (i,)) for i, each in enumerate(described.message_type)]
    while waiting:
        name, message, counting, skipping = waiting.pop()
        yield FoundMessage(pool.FindMessageTypeByName(name), counting, skipping)
        skipped = 0
        for i, inner in enumerate(message.nested_type):
            waiting.append((f"{name}.{inner.name}", inner, (*counting, i), (*skipping, i - skipped)))
            skipped += inner.options.map_entry
