"""Checks that a key or value was written with a registry's schema, under the right subject, and matches the schema."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from sluicegate.validation.rules.custom_rule import place_of
from sluicegate.validation.rules.rule import (
    LIBRARY_FAULTS,
    UNBOUNDED,
    Header,
    LimitedSteps,
    Outage,
    Part,
    RuledRecord,
    SchemaError,
    Side,
    StepBudget,
    TooManySteps,
)
from sluicegate.validation.rules.schemas.content import (
    Content,
    Formats,
    HasJsonEncoding,
    SchemaLanguage,
    SchemaUnusable,
    with_formats,
)
from sluicegate.validation.rules.schemas.framing import SchemaFraming, is_json_encoded
from sluicegate.validation.rules.schemas.looking_ahead import look_ahead
from sluicegate.validation.rules.schemas.rule_sets import NO_RULES, WriteRules
from sluicegate.validation.rules.schemas.wire_format import SchemaId, last_header_value

# In a record from a dead-letter topic, this header names a rule that the serializer does not apply.
_SKIPPED_RULE = b"__rule.name"


class SubjectName(Enum):
    """How a schema's subject is named: the naming strategies of Confluent's serializers."""

    TOPIC = "topic"  # orders-value
    RECORD = "record"  # com.example.Order
    TOPIC_RECORD = "topic-record"  # orders-com.example.Order
    ANY = "any"


class EncryptedPart(Enum):
    """The part of a value that its serializer encrypted."""

    WHOLE = "whole"
    FIELDS = "fields"


class RegistryOutage(Outage):
    """Raised if a registry does not respond. `registry` is its name in the configuration."""

    def __init__(self, text: str, registry: str) -> None:
        super().__init__(text)
        self.registry = registry


class UnknownSchema(Exception):
    """Raised if a registry does not have a schema."""


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema from a registry, and the rules that the registry stores with it."""

    language: SchemaLanguage
    content: Content
    rules: WriteRules = NO_RULES

    def is_encrypted(self, headers: tuple[Header, ...]) -> bool:
        """Return whether a rule encrypted the record's serialized bytes, which then do not match the schema."""
        if not self.rules.payload:
            return False
        skipped = last_header_value(headers, _SKIPPED_RULE) if headers else None
        return any(name.encode(errors="replace") != skipped for name in self.rules.payload)


class Schemas(Protocol):
    """A registry. `schema` and `is_registered_under` may block, and raise Outage and UnknownSchema."""

    @property
    def name(self) -> str:
        """Return the registry's name in the configuration."""

    @property
    def framing(self) -> SchemaFraming:
        """Return the framing with which the registry's serializers name a record's schema."""

    def known(self, schema_id: SchemaId) -> RegisteredSchema | None:
        """Return a schema if it is available without waiting, otherwise None."""

    def schema(self, schema_id: SchemaId) -> RegisteredSchema:
        """Return a schema by its id. Raises SchemaError if it exists but cannot be used."""

    def is_registered_under(self, schema_id: SchemaId, subject: str) -> bool:
        """Return whether the schema is registered under a subject."""

    def count_encrypted(self, part: EncryptedPart) -> None:
        """Count a record that is wholly or partly encrypted, and is therefore not validated."""


_MOST_FRAMING_STEPS = 50_000  # 5 ms
_NAMES = {SchemaLanguage.AVRO: "Avro", SchemaLanguage.JSON: "JSON Schema", SchemaLanguage.PROTOBUF: "Protobuf"}
_BEGINS_OF_JSON = (b"{", b"[")
_PLAIN_JSON = "; it looks like JSON without an id: to accept this, set schema.file in the rule"


def _serializer_for(language: SchemaLanguage) -> str:
    return f"{language.value}: use the serializer for {_NAMES[language]}"


_Check = Callable[[Content, bytes, StepBudget], str | None]
"""A check of bytes against a schema."""


def _fault(content: Content, data: bytes, budget: StepBudget) -> str | None:
    return content.fault(data, budget)


def _explanation(content: Content, data: bytes, budget: StepBudget) -> str | None:
    return content.description(data, budget)


class HasRegisteredSchema:
    """A rule that requires a schema from a registry. A null key or value passes.

    `language` is the required schema language; None means any. `formats` determines the meaning of formats in JSON
    Schemas. `counts_encrypted` is whether the rule reports encrypted records. Only one of a topic's rules reports them.
    """

    is_slow = True  # it may have to wait for a registry

    def __init__(
        self,
        side: Side,
        schemas: Schemas,
        language: SchemaLanguage | None = None,
        subject: SubjectName = SubjectName.TOPIC,
        formats: Formats = Formats.ASSERT,
    ) -> None:
        self.parts = side.part | Part.HEADERS
        self._name = side.value
        self._read = side.bytes_of
        self._side = side
        self._schemas = schemas
        self._language = language
        self._subject = subject
        self._formats = formats
        self.counts_encrypted = True

    @property
    def place(self) -> tuple[str, Side]:
        """Return the registry's name, and whether the rule is for keys or values."""
        return self._schemas.name, self._side

    def fault(self, record: RuledRecord) -> str | None:
        return self._words(record, _fault)

    def look_ahead(self, records: Sequence[RuledRecord], budget: StepBudget) -> None:
        """Validate several records together."""
        look_ahead(map(self.known_content, records), budget)

    def description(self, record: RuledRecord) -> str | None:
        """Return the message of `fault`, with the schema's explanation."""
        try:
            return self._words(record, _explanation)
        except (Outage, SchemaError):
            return None

    def known_content(self, record: RuledRecord) -> tuple[Content, bytes] | None:
        """Return a record's schema and data if this neither waits nor takes long, otherwise None."""
        found = self.known_schema(record)
        if found is None:
            return None
        try:
            return with_formats(found[0].content, self._formats, LimitedSteps(record.budget)), found[1]
        except (TooManySteps, SchemaUnusable):
            return None

    def known_schema(self, record: RuledRecord) -> tuple[RegisteredSchema, bytes] | None:
        """Return the same as `known_content`, but with the rules that the registry stores with the schema."""
        try:
            found = self._named_by(record, LimitedSteps(record.budget, _MOST_FRAMING_STEPS))
        except TooManySteps:
            return None
        if found is None or isinstance(found, str):
            return None
        schema = self._schemas.known(found[0])
        if schema is None or schema.is_encrypted(record.headers):
            return None
        return self._as_encoded(schema, record.headers), found[1]

    def content(self, record: RuledRecord) -> tuple[Content, bytes, str] | None:
        """Return a record's schema, its data, and the schema's name in messages.

        Returns None if the record names no schema that the registry knows, or if the data are encrypted. Raises Outage
        and SchemaError.
        """
        found = self.schema(record)
        return None if found is None else (found[0].content, *found[1:])

    def schema(self, record: RuledRecord) -> tuple[RegisteredSchema, bytes, str] | None:
        """Return the same as `content`, but with the rules that the registry stores with the schema.

        Raises Outage and SchemaError.
        """
        found = self._schema_of(record)
        return None if found is None or found[0].is_encrypted(record.headers) else found

    def is_encrypted(self, record: RuledRecord) -> bool:
        """Return whether one of the registry's rules encrypted the data as a whole. Raises Outage and SchemaError."""
        found = self._schema_of(record)
        return found is not None and found[0].is_encrypted(record.headers)

    def _schema_of(self, record: RuledRecord) -> tuple[RegisteredSchema, bytes, str] | None:
        found = self._named_by(record, record.budget)
        if found is None or isinstance(found, str):
            return None
        schema_id, data = found
        try:
            schema = self._as_encoded(self._schema(schema_id, record.budget), record.headers)
        except UnknownSchema:
            return None
        return schema, data, f"schema {schema_id} of registry {self._schemas.name}"

    def _words(self, record: RuledRecord, of: _Check) -> str | None:
        """Return a record's fault, or None. `of` is the check against its schema."""
        found = self._named_by(record, record.budget)
        if isinstance(found, str):
            is_json = (self._read(record) or b"").startswith(_BEGINS_OF_JSON)
            return f"{found}{_PLAIN_JSON}" if is_json else found
        if found is None:
            return None
        schema_id, data = found
        try:
            return self._words_by_schema(schema_id, data, record, of)
        except LIBRARY_FAULTS as error:
            which = f"schema {schema_id} of registry {self._schemas.name}"
            fault = f"{type(error).__name__} at {place_of(error)}"
            raise SchemaError(f"{which} cannot be applied: the evaluation failed ({fault})") from error
        except UnknownSchema:
            return (
                f"the {self._name} was written with schema {schema_id}, which registry {self._schemas.name} does not "
                f"have; {self._schemas.framing.id_hint}"
            )

    def _named_by(self, record: RuledRecord, budget: StepBudget) -> tuple[SchemaId, bytes] | str | None:
        """Return a record's schema id and data; a message if the id is wrong or missing; None for null."""
        data = self._read(record)
        return None if data is None else self._schemas.framing.named_by(self._side, record.headers, data, budget)

    def _schema(self, schema_id: SchemaId, budget: StepBudget) -> RegisteredSchema:
        """Return a schema. Raises Outage, SchemaError and UnknownSchema."""
        if self._schemas.known(schema_id) is None:
            budget.spend(UNBOUNDED)
        return self._schemas.schema(schema_id)

    def _as_encoded(self, schema: RegisteredSchema, headers: tuple[Header, ...]) -> RegisteredSchema:
        """Return the schema for data in the record's encoding."""
        content = schema.content
        if not is_json_encoded(self._schemas.framing, self._side, headers) or not isinstance(content, HasJsonEncoding):
            return schema
        return replace(schema, content=content.json_encoded())

    def _words_by_schema(self, schema_id: SchemaId, data: bytes, record: RuledRecord, of: _Check) -> str | None:
        schema = self._as_encoded(self._schema(schema_id, record.budget), record.headers)
        which = f"schema {schema_id} of registry {self._schemas.name}"
        if self._language is not None and schema.language is not self._language:
            return f"{which} is {schema.language.value}, but this topic requires {_serializer_for(self._language)}"
        try:
            subject = self._subject_of(schema.content, data, record.topic)
        except SchemaError as error:
            raise SchemaError(f"{which} cannot be used: {error}") from error
        if subject is not None and not self._schemas.is_registered_under(schema_id, subject):
            return (
                f"the {self._name} was written with {which}, which is not registered under subject {subject}; the "
                f"subject's name comes from the serializer's {self._schemas.framing.subject_key(self._side)}"
            )
        is_encrypted = schema.is_encrypted(record.headers)
        if of is _fault and self.counts_encrypted and (is_encrypted or schema.rules.encrypted):
            self._schemas.count_encrypted(EncryptedPart.WHOLE if is_encrypted else EncryptedPart.FIELDS)
        if is_encrypted:
            return None
        try:
            content = with_formats(schema.content, self._formats, record.budget)
            fault = of(content, data, record.budget)
        except (SchemaError, SchemaUnusable) as error:
            raise SchemaError(f"{which} cannot be used: {error}") from error
        return None if fault is None else f"the {self._name} {fault} ({which})"

    def _subject_of(self, content: Content, data: bytes, topic: str) -> str | None:
        """Return the required subject, or None if any is accepted."""
        if self._subject is SubjectName.ANY:
            return None
        if self._subject is SubjectName.TOPIC:
            return f"{topic}-{self._name}"
        record_name = content.record_name(data) or ""
        return record_name if self._subject is SubjectName.RECORD else f"{topic}-{record_name}"
