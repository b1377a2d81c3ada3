"""Checks content against a Protobuf schema, which is given as a FileDescriptorSet (protoc --descriptor_set_out)."""

import struct
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from sluicegate.config.values.extras import RULES_EXTRA
from sluicegate.validation.rules.cel.bytes_values import true_of_bytes
from sluicegate.validation.rules.cel.fields import TrueOfFields
from sluicegate.validation.rules.cel.inline_rules import InlinePrograms, MeetsInlineRules
from sluicegate.validation.rules.cel.rule import IsTrue, MeetsCondition
from sluicegate.validation.rules.cel.runtime import Dialect
from sluicegate.validation.rules.protobuf.cel_values import ProtobufFields, ProtobufValues
from sluicegate.validation.rules.protobuf.constraints import Constraints, MeetsMessageConstraints
from sluicegate.validation.rules.protobuf.cost import ProtobufCost, is_required
from sluicegate.validation.rules.protobuf.encrypted_fields import fields_of, remove_constraints
from sluicegate.validation.rules.protobuf.inline_rules import ProtobufRuledValues, placed_rules_of
from sluicegate.validation.rules.protobuf.json_form import ProtobufJson
from sluicegate.validation.rules.protobuf.message_names import FoundMessage
from sluicegate.validation.rules.protobuf.registry_text import all_messages, with_edition_advice
from sluicegate.validation.rules.rule import UNBOUNDED, StepBudget
from sluicegate.validation.rules.schemas.changed_fields import ChangedFields
from sluicegate.validation.rules.schemas.conditions import (
    Clock,
    NotEvaluated,
    SchemaCondition,
    reads_changed,
    unless_read,
)
from sluicegate.validation.rules.schemas.content import ExpressionOfSchema, SchemaUnusable
from sluicegate.validation.rules.schemas.field_tags import FieldChange
from sluicegate.validation.rules.schemas.follows_as_json import FollowsAsJson
from sluicegate.validation.rules.schemas.inline_rules import PlacedRules
from sluicegate.validation.rules.schemas.mistaken_json import json_hint

_MOST_ERROR = 200
_MOST_LOOKS = 2_000  # about 2 ms
_MOST_LEVELS = 10  # each level is searched again


def first_missing(message: Any) -> str | None:
    """Return the path of the first missing required field, such as `lines[3].sku`.

    Returns None if the field is nested too deeply, or if finding it takes too long.
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
    """Return the first `most` messages that are directly inside a message."""
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


_OF_INTERPRETED = (ValueError, IndexError, ArithmeticError, RecursionError, struct.error)
# About 3 ms.
_EXPLANATION_STEPS = 30_000


class ProtobufContent:
    """A check that bytes are one message. Unknown fields are accepted, as by Protobuf's own readers."""

    is_slow = False

    def __init__(self, message_class: Any, encrypted: Sequence[FieldChange] = ()) -> None:
        """Create a check. `encrypted` contains the rules that encrypt fields."""
        self._new = message_class
        self.descriptor = message_class.DESCRIPTOR
        self._encrypted = ChangedFields(encrypted, fields_of([self.descriptor]))
        self._full_name = str(message_class.DESCRIPTOR.full_name)
        self._cost = ProtobufCost(message_class.DESCRIPTOR)
        self._may_lack_fields = self._cost.may_lack_fields
        # The interpreted library also raises Python's own errors: for strings that are not UTF-8, and for truncated
        # numbers.
        self._unreadable = (import_module("google.protobuf.message").DecodeError, *_OF_INTERPRETED)

    def record_name(self, _data: bytes) -> str | None:
        return self._full_name

    def named(self, _data: bytes) -> "tuple[tuple[ProtobufContent, ...], int]":
        """Return the only message type, and 0 because the message starts at the beginning of the data."""
        return (self,), 0

    def fault(self, data: bytes, budget: StepBudget) -> str | None:
        budget.spend(self._cost.steps(data))
        return self._fault(data)

    def _fault(self, data: bytes) -> str | None:
        message = self._new()
        try:
            message.ParseFromString(data)
        except self._unreadable:
            return (
                f"does not match its Protobuf schema: it cannot be read as {self._full_name}; "
                f"was it written with this schema?{json_hint(data, 'Protobuf')}"
            )
        if self._may_lack_fields and not message.IsInitialized():
            return f"does not match its Protobuf schema: {self._full_name} lacks required fields"
        return None

    @property
    def encrypted_names(self) -> frozenset[str]:
        """Return the names of the fields that serializers encrypt."""
        return self._encrypted.names

    def expression(self, text: str) -> ExpressionOfSchema:
        """Return an expression over the message. Raises ExpressionUnusable."""
        values = ProtobufValues(self._new.DESCRIPTOR, self._cost.steps, self._fault)
        return unless_read(self._encrypted, text, IsTrue(text, values))

    def condition(self, condition: SchemaCondition, now: Clock) -> ExpressionOfSchema:
        """Return a registry's condition on the message. Raises ExpressionUnusable."""
        if condition.is_about_bytes:
            return true_of_bytes(condition, now)
        if condition.changes and reads_changed(condition, fields_of([self.descriptor])):
            return NotEvaluated()
        if condition.is_about_fields:
            return TrueOfFields(condition, ProtobufFields(self._new, self._cost.steps, self._fault), now)
        values = ProtobufValues(self._new.DESCRIPTOR, self._cost.steps, self._fault, Dialect.CONDITION)
        return MeetsCondition(condition.expression, values, now)

    def constraints(self) -> ExpressionOfSchema:
        """Return the message's `buf.validate` constraints. Raises SchemaUnusable."""
        return MeetsMessageConstraints(Constraints([self._new]), self._new)

    def ruled_values(self, placed: PlacedRules) -> ProtobufRuledValues:
        """Return the visitor of messages for the rules inside their schema."""
        return ProtobufRuledValues(self._new, placed, self._cost.steps, self._fault)

    def inline_rules(self, changes: Sequence[FieldChange], now: Clock) -> ExpressionOfSchema | None:
        """Return the rules inside the schema. Raises ExpressionUnusable."""
        placed = self.placed_rules(changes)
        programs = InlinePrograms(placed.evaluated, self.descriptor.file.pool)
        return MeetsInlineRules(programs, self.ruled_values(placed), now) if programs else None

    def placed_rules(self, changes: Sequence[FieldChange] = ()) -> PlacedRules:
        """Return the rules inside the schema, with their places."""
        return placed_rules_of([self.descriptor], changes)

    def follows_as_json(self, json_schema: str) -> ExpressionOfSchema:
        """Return the condition that the message, as JSON, is valid against a JSON Schema. Raises SchemaUnusable."""
        from sluicegate.validation.rules.json.schema import json_schema_content  # noqa: PLC0415  # for such rules only

        encrypted = self._encrypted.in_json()
        return FollowsAsJson(json_schema_content(json_schema, encrypted=encrypted), self.json_form())

    def json_form(self) -> ProtobufJson:
        """Return the conversion of messages to JSON."""
        return ProtobufJson(self._new, self._cost.steps, self._fault)

    def description(self, data: bytes, budget: StepBudget) -> str | None:
        """Return the first missing required field; None if there is none, or if it is nested too deeply."""
        steps = self._cost.steps(data) if self._may_lack_fields else UNBOUNDED
        if steps > _EXPLANATION_STEPS:
            return None
        budget.spend(steps)
        message = self._new()
        try:
            message.ParseFromString(data)
        except self._unreadable:
            return None
        missing = first_missing(message)
        if missing is None:
            return None
        return f"does not match its Protobuf schema: {self._full_name} lacks the required field {missing[:200]}"


def protobuf_content(descriptor_set: bytes, message: str) -> ProtobufContent:
    """Return the content for the message with this full name. Raises SchemaUnusable."""
    pool, files = pool_of(descriptor_set)
    try:
        return ProtobufContent(class_of(pool.FindMessageTypeByName(message)))
    except KeyError:
        found = (each for file in files for each in messages_of(file, pool) if not each.is_map_entry)
        names = sorted(each.descriptor.full_name for each in found)
        some = ", ".join(names[:10])
        raise SchemaUnusable(f"the schema has no message {message[:200]}; its messages: {some or 'none'}") from None


def pool_of(descriptor_set: bytes, encrypted: Sequence[FieldChange] = ()) -> tuple[Any, list[Any]]:
    """Return a set's pool and files, without the constraints of encrypted fields. Raises SchemaUnusable."""
    try:
        descriptor_pb2 = import_module("google.protobuf.descriptor_pb2")
        pool = import_module("google.protobuf.descriptor_pool").DescriptorPool()
    except ImportError:
        raise SchemaUnusable(f"Protobuf needs protobuf: {RULES_EXTRA}") from None
    files = descriptor_pb2.FileDescriptorSet()
    try:
        files.ParseFromString(descriptor_set)
        remove_constraints(files, encrypted)
        for file in files.file:
            _add(pool, file)
        found = [pool.FindFileByName(file.name) for file in files.file]
    except Exception as error:  # DecodeError, and TypeError or KeyError for missing imports
        raise SchemaUnusable(
            f"the file is not a usable FileDescriptorSet (protoc --include_imports --descriptor_set_out=FILE): "
            f"{with_edition_advice(str(error)[:_MOST_ERROR])}"
        ) from error
    return pool, found


def _add(pool: Any, file: Any) -> None:
    """Add a file to a pool.

    Unless an option allows it, the library rejects fields with equal JSON names, which protoc and Java accept. Only
    Protobuf's own JSON mapping uses these names.
    """
    try:
        pool.Add(file)
    except TypeError as error:
        if "json_name" not in str(error):
            raise
        for _, _, message in all_messages(file):
            message.options.deprecated_legacy_json_field_conflicts = True
        pool.Add(file)


def class_of(descriptor: Any) -> Any:
    """Return the class of a message type."""
    return import_module("google.protobuf.message_factory").GetMessageClass(descriptor)


def messages_of(file: Any, pool: Any) -> Iterator[FoundMessage]:
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
