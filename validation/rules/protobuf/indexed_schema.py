"""Checks content that names its Protobuf message type in its first bytes, as a registry's serializers write it."""

from collections.abc import Callable, Sequence
from typing import Any

from sluicegate.validation.rules.cel.inline_rules import InlinePrograms, MeetsInlineRules
from sluicegate.validation.rules.cel.rule import replace_value
from sluicegate.validation.rules.cel.variables import NotOfSchema
from sluicegate.validation.rules.protobuf.constraints import Constraints, MeetsMessageConstraints
from sluicegate.validation.rules.protobuf.encrypted_fields import fields_of
from sluicegate.validation.rules.protobuf.inline_rules import placed_rules_of
from sluicegate.validation.rules.protobuf.json_form import ProtobufJson
from sluicegate.validation.rules.protobuf.message_names import (
    FIRST_MESSAGE,
    Key,
    MessageNaming,
    NamedMessages,
    named_messages,
)
from sluicegate.validation.rules.protobuf.schema import ProtobufContent, class_of, messages_of, pool_of
from sluicegate.validation.rules.rule import RuledRecord, RuleUnusable, SchemaError, StepBudget
from sluicegate.validation.rules.schemas.changed_fields import ChangedFields
from sluicegate.validation.rules.schemas.conditions import Clock, SchemaCondition
from sluicegate.validation.rules.schemas.content import Content, ExpressionOfSchema, SchemaUnusable
from sluicegate.validation.rules.schemas.field_tags import FieldChange
from sluicegate.validation.rules.schemas.inline_rules import PlacedRules

_NO_INDEXES = (
    "; it can be read as the first message without indexes, as kafkajs's serializer writes it: to accept this, set "
    "message_indexes: optional in the entry of registries"
)
_MOST_EXPRESSIONS = 20  # the maximum number of compiled expressions per schema; each takes up to 200 kB


class IndexedProtobufContent:
    """A check that bytes name a message type in a file, as a registry's serializers do, and are such a message.

    If the bytes may name several types, data of any of them are accepted.
    """

    is_slow = False

    def __init__(self, messages: NamedMessages, encrypted: Sequence[FieldChange] = ()) -> None:
        """Create a check. `encrypted` contains the rules that encrypt fields.

        The classes of `messages` are created on first use.
        """
        self._messages = messages
        self._encrypted = encrypted
        self._contents: dict[Key, tuple[ProtobufContent, ...]] = {}

    @property
    def descriptors(self) -> list[Any]:
        """Return the descriptors of all messages."""
        return [each for messages in self._messages.by_key.values() for each in messages]

    def record_name(self, data: bytes) -> str | None:
        found = self._find(data)
        if found is None:
            return None
        contents, begins = found
        if len(contents) == 1:
            return contents[0].record_name(b"")
        body = data[begins:]
        budget = StepBudget()
        return next((each for each in contents if each.fault(body, budget) is None), contents[0]).record_name(b"")

    def fault(self, data: bytes, budget: StepBudget) -> str | None:
        found = self._find(data)
        if found is None:
            naming = self._messages.naming
            hint = _NO_INDEXES if naming is MessageNaming.CONFLUENT and self._is_first(data, budget) else ""
            return f"does not match its Protobuf schema: {naming.value}{hint}"
        contents, begins = found
        body = data[begins:]
        faults = [each.fault(body, budget) for each in contents]
        return None if None in faults else faults[0]

    @property
    def encrypted_names(self) -> frozenset[str]:
        """Return the names of the fields, in all messages, that serializers encrypt."""
        return ChangedFields(self._encrypted, fields_of(self.descriptors)).names

    def expression(self, text: str) -> ExpressionOfSchema:
        """Return an expression over the message that the data name.

        Raises RuleUnusable if the file contains a single message and the expression does not fit it.
        """
        if len(self._messages.by_key) == 1:
            for content in self._contents_of(next(iter(self._messages.by_key))):
                content.expression(text)
        return _IndexedExpression(lambda content: content.expression(text), self._find)

    def condition(self, condition: SchemaCondition, now: Clock) -> ExpressionOfSchema:
        """Return a registry's condition on the message that the data name. Raises ExpressionUnusable.

        Compiles the condition for only one message. No condition depends on types, so it compiles either for all
        messages or for none.
        """
        for key in self._messages.by_key:
            self._contents_of(key)[0].condition(condition, now)
            break
        return _IndexedExpression(lambda content: content.condition(condition, now), self._find)

    def constraints(self) -> ExpressionOfSchema:
        """Return the `buf.validate` constraints of the message that the data name.

        Raises SchemaUnusable if any message in the file has constraints that cannot be compiled.
        """
        all_of_file = Constraints(map(class_of, self.descriptors))
        return _IndexedExpression(
            lambda content: MeetsMessageConstraints(all_of_file, class_of(content.descriptor)), self._find
        )

    def inline_rules(self, changes: Sequence[FieldChange], now: Clock) -> ExpressionOfSchema | None:
        """Return the rules inside the schema. Raises ExpressionUnusable."""
        placed = self.placed_rules(changes)
        if not placed.evaluated:
            return None
        programs = InlinePrograms(placed.evaluated, self.descriptors[0].file.pool)
        return _IndexedInlineRules(programs, placed, now, self._find)

    def placed_rules(self, changes: Sequence[FieldChange] = ()) -> PlacedRules:
        """Return the rules inside the schema, with their places."""
        return placed_rules_of(self.descriptors, changes)

    def follows_as_json(self, json_schema: str) -> ExpressionOfSchema:
        """Return the condition that the named message, as JSON, is valid against a JSON Schema."""
        return _IndexedExpression(lambda content: content.follows_as_json(json_schema), self._find)

    def json_form(self) -> "_IndexedJson":
        """Return the conversion to JSON of the messages that the data name."""
        return _IndexedJson(self._find)

    def description(self, data: bytes, budget: StepBudget) -> str | None:
        """Return the explanation for the named message."""
        found = self._find(data)
        return None if found is None else found[0][0].description(data[found[1] :], budget)

    def named(self, data: bytes) -> tuple[tuple[ProtobufContent, ...], int]:
        """Return the message types that the data may name, and the start of the message.

        Returns no types if the name is unknown.
        """
        return self._find(data) or ((), 0)

    def _find(self, data: bytes) -> tuple[tuple[ProtobufContent, ...], int] | None:
        """Return the contents for the named messages, and the start of the message; None if the name is unknown."""
        named = self._messages.read(data)
        contents = () if named is None else self._contents_of(named[0])
        if named is not None and contents:
            return contents, named[1]
        first = self._contents_of(FIRST_MESSAGE) if self._messages.naming is MessageNaming.OPTIONAL_INDEXES else ()
        return (first, 0) if first else None

    def _is_first(self, data: bytes, budget: StepBudget) -> bool:
        """Return whether data without message indexes are the file's first message."""
        return any(each.fault(data, budget) is None for each in self._contents_of(FIRST_MESSAGE))

    def _contents_of(self, key: Key) -> tuple[ProtobufContent, ...]:
        contents = self._contents.get(key)
        if contents is None:
            contents = tuple(
                ProtobufContent(class_of(each), self._encrypted) for each in self._messages.by_key.get(key, ())
            )
            if contents:
                self._contents[key] = contents
        return contents


class _IndexedExpression:
    """An expression over the messages in a file. It is compiled for each message type on first use.

    If the data may name several types, the first type that they match is used.
    """

    def __init__(
        self,
        compile_for: Callable[[ProtobufContent], ExpressionOfSchema],
        find: Callable[[bytes], tuple[tuple[ProtobufContent, ...], int] | None],
    ) -> None:
        self._compile_for = compile_for
        self._find = find
        self._by_message: dict[ProtobufContent, ExpressionOfSchema | RuleUnusable] = {}

    def fault(self, record: RuledRecord) -> str | None:
        """Return a record's fault, or None. Raises SchemaError if the message lacks a field."""
        found = self._followed(record)
        if found is None:
            return None  # the rule for the schema reports it
        rule, bare = found
        if isinstance(rule, RuleUnusable):
            raise SchemaError(f"the expression does not fit the schema: {rule}")
        return rule.fault(bare)

    def description(self, record: RuledRecord) -> str | None:
        """Return the explanation of the expression's fault."""
        found = self._followed(record)
        return None if found is None or isinstance(found[0], RuleUnusable) else found[0].description(found[1])

    def _followed(self, record: RuledRecord) -> tuple[ExpressionOfSchema | RuleUnusable, RuledRecord] | None:
        """Return the expression for the type that the data match, and the record with only the message as its value."""
        data = record.value or b""
        contents, begins = self._find(data) or ((), 0)
        body = data[begins:]
        if len(contents) != 1:
            contents = tuple(each for each in contents if each.fault(body, record.budget) is None)[:1]
        return (self._rule_of(contents[0]), replace_value(record, body)) if contents else None

    def _rule_of(self, content: ProtobufContent) -> ExpressionOfSchema | RuleUnusable:
        rule = self._by_message.get(content)
        if rule is None:
            try:
                rule = self._compile_for(content)
            except RuleUnusable as error:
                rule = error
            if len(self._by_message) >= _MOST_EXPRESSIONS:  # data from clients name the message
                self._by_message.clear()
            self._by_message[content] = rule
        return rule


class _IndexedInlineRules(_IndexedExpression):
    """The rules inside the schema, compiled once for all messages in a file."""

    def __init__(
        self,
        programs: InlinePrograms,
        placed: PlacedRules,
        now: Clock,
        find: Callable[[bytes], tuple[tuple[ProtobufContent, ...], int] | None],
    ) -> None:
        super().__init__(lambda content: MeetsInlineRules(programs, content.ruled_values(placed), now), find)
        self.unusable_rules = programs.unusable_rules


class _IndexedJson:
    """The messages in a file (`JsonForm`). If data may name several types, the first type that they match is used."""

    def __init__(self, find: Callable[[bytes], tuple[tuple[ProtobufContent, ...], int] | None]) -> None:
        self._find = find
        self._forms: dict[ProtobufContent, ProtobufJson] = {}

    def text(self, data: bytes, budget: StepBudget) -> bytes:
        """Return the message as JSON. Raises NotOfSchema and NoJsonForm."""
        contents, begins = self._find(data) or ((), 0)
        body = data[begins:]
        for content in contents:
            if content.fault(body, budget) is None:
                return self._form_of(content).text(body, budget)
        raise NotOfSchema

    def _form_of(self, content: ProtobufContent) -> ProtobufJson:
        form = self._forms.get(content)
        if form is None:
            if len(self._forms) >= _MOST_EXPRESSIONS:  # data from clients name the message
                self._forms.clear()
            form = self._forms[content] = content.json_form()
        return form


def indexed_protobuf_content(
    descriptor_set: bytes, naming: MessageNaming = MessageNaming.CONFLUENT, encrypted: Sequence[FieldChange] = ()
) -> Content:
    """Return the content for all messages in the last file of the set. The earlier files are its imports.

    `encrypted` are the rules that encrypt fields. Raises SchemaUnusable.
    """
    pool, files = pool_of(descriptor_set, encrypted)
    if not files:
        raise SchemaUnusable("the schema has no messages")
    return IndexedProtobufContent(named_messages(naming, messages_of(files[-1], pool)), encrypted)
