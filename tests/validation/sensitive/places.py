"""Defines values in every format that masks search, with the sensitive fields in tests/bounds/hostile_values.py."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from sluicegate.proxy.rules_process.protoc import OWN_NAME, descriptor_set_of
from sluicegate.validation.rules.avro.schema import avro_content
from sluicegate.validation.rules.protobuf.indexed_schema import indexed_protobuf_content
from sluicegate.validation.rules.rule import RuledRecord
from sluicegate.validation.rules.schemas.content import Content
from sluicegate.validation.sensitive.paths import Action, FieldPolicy, path_of, tree_of
from sluicegate.validation.sensitive.schema_values import SchemaValues
from sluicegate.validation.sensitive.values import JsonValues, Values
from tests.bounds.hostile_values import FIELDS, SCHEMAS, Format

KEY = b"k" * 16
POLICIES = [
    FieldPolicy(action, tuple(map(path_of, paths)), Action(action), "***", KEY) for action, paths in FIELDS.items()
]
ROOT = (tree_of(POLICIES),)


class SingleSchema:
    """Finds the same schema for all records, which have no id. `indexes`: the message indexes of Protobuf, from a
    header."""

    def __init__(self, content: Content, indexes: bytes = b"") -> None:
        self._content = content
        self._indexes = indexes

    def known_content(self, record: RuledRecord) -> tuple[Content, bytes] | None:
        return self._content, self._indexes + (record.value or b"")

    def content(self, record: RuledRecord) -> tuple[Content, bytes, str] | None:
        return self._content, self._indexes + (record.value or b""), "schema 7"


def schema_file(format: Format) -> Path:
    assert format.value is not None
    return SCHEMAS / format.value


@cache
def protobuf_content() -> Any:
    text = schema_file(Format.PROTOBUF).read_text()
    return indexed_protobuf_content(descriptor_set_of(OWN_NAME, text, {}))


def _avro() -> Values:
    return SchemaValues(POLICIES, ROOT, SingleSchema(avro_content(schema_file(Format.AVRO).read_text())))


def _protobuf() -> Values:
    return SchemaValues(POLICIES, ROOT, SingleSchema(protobuf_content(), b"\0"))


VALUES: dict[Format, Callable[[], Values]] = {
    Format.JSON: lambda: JsonValues(ROOT),
    Format.AVRO: _avro,
    Format.PROTOBUF: _protobuf,
}
