"""What the file asks of a key or a value. Each kind of rule that has keys of its own has a section here."""

from typing import Annotated, Literal

from pydantic import BeforeValidator

from sluicegate.config.section import described, is_unset, section
from sluicegate.config.values.kinds import FileName, Flag, SomeBytes, Text
from sluicegate.config.values.quantity import count

MOST_JSON_DEPTH = 500
"""How deep JSON may be nested at most: what Python's reader, which looks for duplicate keys, still follows."""

_DEPTH = count(1, MOST_JSON_DEPTH)
JsonDepth = Annotated[int, BeforeValidator(_DEPTH.read), _DEPTH]


@section
class Json:
    """One JSON text, and nothing else."""

    duplicate_keys: Literal["allow", "reject"] = described("whether an object may have a key twice", default="allow")
    max_depth: JsonDepth = described("how many objects and arrays may lie within each other", default=128)


@section
class Schema:
    """A schema from a file or from a registry, where each record names its own."""

    file: FileName | None = described("a file with the schema; this or `registry`", default=None)
    registry: Text | None = described("one of `registries`: the record names its schema", default=None)
    format: Literal["json", "avro", "protobuf"] | None = described(
        "the schema's language; beside `registry`: the only one that is taken", default=None
    )
    envelope: Literal["none", "confluent"] | None = described(
        "beside `file`: what stands before the data, nothing or `confluent`, a zero byte and an id", default=None
    )
    message: Text | None = described("beside a Protobuf file: the full name of the message", default=None)
    subject: Literal["topic", "record", "topic-record", "any"] | None = described(
        "beside `registry`: under which subject the schema must be registered; none: `topic`", default=None
    )

    def __post_init__(self) -> None:
        if (self.file is None) == (self.registry is None):
            raise ValueError("a schema comes from a file or from a registry: give one of the two")
        if self.file is not None and self.format is None:
            raise ValueError("format is needed beside file: json, avro or protobuf")
        if self.file is None and self.envelope is not None:
            raise ValueError("envelope belongs to file; what is written with a registry says which schema it has")
        if self.file is not None and self.subject is not None:
            raise ValueError("subject belongs to registry")
        if (self.message is not None) != (self.file is not None and self.format == "protobuf"):
            raise ValueError("message (a full name) belongs to a Protobuf file, and is needed there")


@section
class ContentKeys:
    """Of a key or a value; null has no size and is no text, so only `required` rejects it."""

    required: Flag = described("`true`: it may not be null", default=False)
    min_size: SomeBytes | None = described("least size; 1: it may not be empty", default=None)
    max_size: SomeBytes | None = described("greatest size", default=None)
    utf8: Flag = described("`true`: it must be text in UTF-8", default=False)
    json: Json | None = described(
        "The {side} is one JSON text and nothing else; `json: {}` has the defaults.", default=None
    )
    schema_: Schema | None = described("The {side} follows a schema.", name="schema", default=None)

    def __post_init__(self) -> None:
        if is_unset(self):
            raise ValueError("expected something to ask for, as required: true or max_size: 1MiB")
        if self.min_size is not None and self.max_size is not None and self.min_size > self.max_size:
            raise ValueError(f"min_size {self.min_size} is more than max_size {self.max_size}")
