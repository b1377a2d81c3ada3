"""Visits messages and their fields for the rules inside their schema, as Confluent's client does."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from sluicegate.validation.rules.cel.inline_rules import InlineVisit
from sluicegate.validation.rules.cel.variables import NotOfSchema
from sluicegate.validation.rules.protobuf.cel_values import ProtobufValues, cel_converters
from sluicegate.validation.rules.protobuf.constraints import reachable_messages
from sluicegate.validation.rules.protobuf.encrypted_fields import fields_of
from sluicegate.validation.rules.schemas.changed_fields import ChangedFields
from sluicegate.validation.rules.schemas.field_tags import FieldChange
from sluicegate.validation.rules.schemas.inline_rules import PlacedRules, RulePlace, protobuf_inline_rules


def places_of_messages(descriptors: Iterable[Any]) -> Iterator[RulePlace]:
    """Yield messages, their fields, and all messages that are reachable from these."""
    for descriptor in reachable_messages(descriptors):
        yield RulePlace(descriptor.full_name, protobuf_inline_rules(descriptor))
        for field in descriptor.fields:
            yield RulePlace(field.full_name, protobuf_inline_rules(field), field.name)


def placed_rules_of(descriptors: Iterable[Any], changes: Sequence[FieldChange]) -> PlacedRules:
    """Return the rules of messages, of their fields, and of all messages reachable from these, with their places."""
    messages = list(descriptors)
    return PlacedRules(places_of_messages(messages), ChangedFields(changes, fields_of(messages)))


class ProtobufRuledValues:
    """The values of one message type (`RuledValues`). Fields with presence are visited only if they are set."""

    def __init__(
        self,
        message_class: Any,
        placed: PlacedRules,
        steps: Callable[[bytes], int],
        fault: Callable[[bytes], str | None],
    ) -> None:
        self._new = message_class
        self.pool = message_class.DESCRIPTOR.file.pool
        self.estimate_reading = ProtobufValues(message_class.DESCRIPTOR, steps, fault).estimate_reading
        self._fault = fault
        self._converters = cel_converters()
        self._placed = placed

    def visit(self, data: bytes, visit: InlineVisit) -> None:
        """Visit all messages and their fields."""
        if self._fault(data) is not None:
            raise NotOfSchema
        self._message(self._new.FromString(data), "", visit)

    def _message(self, message: Any, path: str, visit: InlineVisit) -> None:
        visit.apply(self._placed.at(message.DESCRIPTOR.full_name), path, lambda: message)
        for field in message.DESCRIPTOR.fields:
            if field.has_presence and not message.HasField(field.name):
                continue
            value = getattr(message, field.name)
            its_path = f"{path}.{field.name}" if path else field.name
            visit.apply(self._placed.at(field.full_name), its_path, partial(self._this, field, value))
            if field.message_type is None:
                continue
            if field.message_type.GetOptions().map_entry:
                if field.message_type.fields_by_name["value"].message_type is not None:
                    for each in value.values():
                        self._message(each, f"{its_path}[…]", visit)
            elif field.label == field.LABEL_REPEATED:
                for i, each in enumerate(value):
                    self._message(each, f"{its_path}[{i}]", visit)
            else:
                self._message(value, its_path, visit)

    def _this(self, field: Any, value: Any) -> Any:
        """Return a field's value for the runtime."""
        if field.label != field.LABEL_REPEATED:
            return self._converted(field, value)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            keys, values = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
            return {self._key(keys, name): self._converted(values, each) for name, each in value.items()}
        return [self._converted(field, each) for each in value]

    def _converted(self, field: Any, value: Any) -> Any:
        convert = self._converters.get(field.type)
        return value if convert is None else convert(value)

    def _key(self, field: Any, value: Any) -> Any:
        return self._converted(field, value) if isinstance(value, str) else value
