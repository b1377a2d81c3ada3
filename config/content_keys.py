"""The sections `key` and `value` of a rule. Each kind of content rule that has its own keys has a section here."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator

from sluicegate.config.mistakes import raise_all
from sluicegate.config.section import described, is_unset, section
from sluicegate.config.values.kinds import FileName, Flag, SomeBytes, Text
from sluicegate.config.values.quantity import whole_number

MOST_JSON_DEPTH = 500
"""The maximum nesting depth of JSON. Python's parser, which finds duplicate keys, cannot recurse deeper."""

_DEPTH = whole_number(1, MOST_JSON_DEPTH)
JsonDepth = Annotated[int, BeforeValidator(_DEPTH.read), _DEPTH]


@section
class Json:
    """The rule that the content is exactly one JSON text."""

    duplicate_keys: Literal["allow", "reject"] = described(
        "Whether an object may contain the same key twice.", default="allow"
    )
    max_depth: JsonDepth = described("The maximum nesting depth of objects and arrays.", default=128)


@section
class Schema:
    """A schema from a file, from a text, or from a registry by the schema id in each record."""

    file: FileName | None = described(
        "The file with the schema. Set exactly one of `file`, `text` and `registry`.", default=None
    )
    text: Text | None = described(
        "The schema itself. For Protobuf, this is the content of a `.proto` file.", default=None
    )
    registry: Text | None = described(
        "The name of an entry of `registries`. Each record contains its schema's id in that registry.",
        default=None,
    )
    format: Literal["json", "avro", "protobuf"] | None = described(
        "The schema language. With `registry`, schemas in other languages are rejected.", default=None
    )
    envelope: Literal["none", "confluent"] | None = described(
        "The prefix that precedes the data, with `file` or `text`: `none`, or `confluent` (a zero byte and a schema "
        "id).",
        default=None,
    )
    message: Text | None = described("The full name of the message, with Protobuf in `file` or `text`.", default=None)
    subject: Literal["topic", "record", "topic-record", "any"] | None = described(
        "The strategy that determines the subject under which a schema must be registered, with `registry`. Default: "
        "`topic`.",
        default=None,
    )
    formats: Literal["assert", "annotate"] | None = described(
        "The effect of the keyword `format` in a JSON Schema: `assert` validates values by it, `annotate` ignores "
        "it. Default: `assert`.",
        default=None,
    )
    conditions: Flag = described(
        "Whether to apply the conditions that the registry stores with a schema, with `registry` "
        "(`ruleSet.domainRules` of kind `CONDITION`, in CEL).",
        default=False,
    )
    inline_rules: Flag = described(
        "Whether to apply the rules inside the registry's schemas, with `registry` (`confluent:rules`, and `rules` of "
        "Protobuf's `confluent.field_meta` and `confluent.message_meta`, in CEL).",
        default=False,
    )
    protovalidate: Flag = described(
        "Whether to apply the schema's `buf.validate` constraints, with `format: protobuf`. Needs `pip install "
        "'sluicegate[rules,protovalidate]'`.",
        default=False,
    )
    json_schema: Text | None = described(
        "A JSON Schema that the data, converted to JSON, must also match, with `format: avro` or `protobuf`.",
        default=None,
    )

    def __post_init__(self) -> None:
        if sum(source is not None for source in (self.file, self.text, self.registry)) != 1:
            raise ValueError("a schema requires exactly one of file, text and registry")
        raise_all(((), message) for message in self._mistakes())

    def _mistakes(self) -> Iterator[str]:
        if self.file is not None and self.format is None:
            yield "format is required with file: json, avro or protobuf"
        if self.text is not None and self.format is None:
            yield "format is required with text: json, avro or protobuf"
        if self.registry is not None and self.envelope is not None:
            yield "envelope is only valid with file: records written with a registry contain the schema id"
        if self.registry is None and self.conditions:
            yield "conditions is only valid with registry"
        if self.registry is None and self.inline_rules:
            yield "inline_rules is only valid with registry"
        if self.protovalidate and self.format != "protobuf":
            yield "protovalidate needs format: protobuf"
        if self.json_schema is not None and self.format not in ("avro", "protobuf"):
            yield "json_schema is only valid with format: avro or protobuf; set the schema of JSON data in text or file"
        if self.formats is not None and self.format in ("avro", "protobuf"):
            yield "formats is only valid for JSON Schemas (format: json)"
        if self.registry is None and self.subject is not None:
            yield "subject is only valid with registry"
        if (self.message is not None) != (self.registry is None and self.format == "protobuf"):
            yield "message (a full name) is required for Protobuf in file or text, and only valid there"


@section
class ContentKeys:
    """Rules about a key or a value. Only `required` rejects null."""

    required: Flag = described(
        "Whether null is rejected.",
        default=False,
        misnomers={"not_null": "required: true"},
    )
    min_size: SomeBytes | None = described(
        "The minimum size. A minimum of 1 rejects an empty key or value.", default=None
    )
    max_size: SomeBytes | None = described("The maximum size.", default=None)
    utf8: Flag = described("Whether the content must be valid UTF-8.", default=False)
    json: Json | None = described(
        "The {side} must be exactly one JSON text. `json: {}` uses the defaults.", default=None
    )
    schema_: Schema | None = described(
        "The {side} must match a schema.",
        name="schema",
        default=None,
        corrections={
            "*.avsc": "{file: {value}, format: avro}",
            "*.json": "{file: {value}, format: json}",
            "*.proto": "{file: {value}, format: protobuf, message: …}",
        },
        misnomers={
            "avro": "schema: {file: {value}, format: avro}",
            "json_schema": "schema: {file: {value}, format: json}",
            "protobuf": "schema: {file: {value}, format: protobuf, message: …}",
            "proto": "schema: {file: {value}, format: protobuf, message: …}",
            "registry": "schema: {registry: {value}}",
        },
    )

    def __post_init__(self) -> None:
        if is_unset(self):
            raise ValueError("expected at least one key, such as required: true or max_size: 1MiB")
        if self.min_size is not None and self.max_size is not None and self.min_size > self.max_size:
            raise ValueError(f"min_size {self.min_size} is more than max_size {self.max_size}")
