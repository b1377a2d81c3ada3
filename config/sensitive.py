"""The section `sensitive`: fields that are masked, hashed or rejected before a batch is stored."""

from typing import Annotated, Literal

from pydantic import AfterValidator

from sluicegate.config.content_keys import Schema
from sluicegate.config.section import described, section
from sluicegate.config.values import json_schema_kinds as schema
from sluicegate.config.values.kinds import AnyText, FileName, Text
from sluicegate.config.values.password import Password


def _path(text: str) -> str:
    names = text.replace("\\\\", "").replace("\\.", "").split(".")
    if not all(names) or text.endswith("\\"):
        raise ValueError(f"expected names separated by dots, such as customer.email; found {text!r}")
    return text


FieldPath = Annotated[AnyText, AfterValidator(_path), schema.schema_note(schema.TEXT)]


@section
class SensitiveFields:
    """Fields of JSON, Avro or Protobuf values, and what happens to them.

    Keys of records cannot be masked, because a masked key would have another partition and another meaning for
    compaction.
    """

    name: Text = described("The name in responses, events, log lines and metrics.")
    action: Literal["mask", "hash", "reject"] = described(
        "What happens to the fields: `mask` replaces a string by `replacement`, `hash` replaces it by its "
        "HMAC-SHA-256 with the key in `key_file`, as 64 hexadecimal digits, and `reject` rejects records that have "
        "the field."
    )
    fields: Annotated[tuple[FieldPath, ...], schema.Takes("a list of paths")] = described(
        "The paths of the fields in a value, for example `customer.email`. A path consists of names separated by "
        "dots, with `*` for any name and `\\.` for a dot in a name. An array has no part in a path: the path "
        "continues in each object of the array. Set `fields`, `tags` or both.",
        default=(),
    )
    tags: tuple[Text, ...] = described(
        "The tags of the fields in the schema, for example `PII`: `confluent:tags` in Avro and JSON Schema, "
        "`(confluent.field_meta).tags` in Protobuf. Needs `schema`.",
        default=(),
    )
    schema_: Schema | None = described(
        "The schema of the values, for Avro, Protobuf and `tags`. It applies to all sensitive fields of a topic, so "
        "only one entry of a topic may set it. Default: the values are JSON.",
        name="schema",
        default=None,
    )
    replacement: AnyText = described("The text that replaces a string, with `action: mask`.", default="***")
    key_file: FileName | None = described(
        "The file with the key of `action: hash`, at least 16 bytes. The proxy removes line ends at the end of the "
        "file.",
        default=None,
    )

    def __post_init__(self) -> None:
        if not self.fields and not self.tags:
            raise ValueError(f"sensitive fields {self.name}: name at least one field or tag")
        if (self.action == "hash") != (self.key_file is not None):
            raise ValueError(f"sensitive fields {self.name}: action: hash and key_file must be set together")

    @property
    def key(self) -> Password:
        """Return the key of `action: hash`."""
        return Password("sensitive.key_file", None, self.key_file)


def check_names_of_fields(sensitive: tuple[SensitiveFields, ...]) -> tuple[SensitiveFields, ...]:
    """Check that names are unique within a topic, because responses and metrics use them. Raises ValueError."""
    seen: set[str] = set()
    for fields in sensitive:
        if fields.name in seen:
            raise ValueError(f"two sensitive fields are named {fields.name}; names must be unique")
        seen.add(fields.name)
    return sensitive
