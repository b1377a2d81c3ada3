"""Defines values in every format that masks search, with the sensitive fields in tests/bounds/hostile_values.py."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from sluicegate.proxy.rules_process.protoc import OWN_NAME, compile_descriptor_set
from sluicegate.validation.rules.avro.schema import compile_avro_content
from sluicegate.validation.rules.protobuf.indexed_schema import indexed_protobuf_content
from sluicegate.validation.rules.rule import RuledRecord
from sluicegate.validation.rules.schemas.content import Content
from sluicegate.validation.sensitive.paths import Action, FieldPolicy, build_policy_tree, parse_field_path
from sluicegate.validation.sensitive.schema_values import SchemaValues
from sluicegate.validation.sensitive.values import JsonValues, Values
from tests.bounds.hostile_values import FIELDS, SCHEMAS, Format

KEY = b"k" * 16
POLICIES = [
    FieldPolicy(action, tuple(map(parse_field_path, paths)), Action(action), "***", KEY)
    for action, paths in FIELDS.items()
]
ROOT = (build_policy_tree(POLICIES),)


class SingleSchemaRule:
    """Finds the same schema for all records, which have no id. `indexes`: the message indexes of Protobuf, from a
    header."""

    def __init__(self, content: Content, indexes: bytes = b"") -> None:
        self._content = content
        self._indexes = indexes

    def content_without_waiting(self, record: RuledRecord) -> tuple[Content, bytes] | None:
        return self._content, self._indexes + (record.value or b"")

    def content(self, record: RuledRecord) -> tuple[Content, bytes, str] | None:
        return self._content, self._indexes + (record.value or b""), "schema 7"


def schema_file_of_format(format: Format) -> Path:
    assert format.value is not None
    return SCHEMAS / format.value


@cache
def protobuf_content() -> Any:
    text = schema_file_of_format(Format.PROTOBUF).read_text()
    return indexed_protobuf_content(compile_descriptor_set(OWN_NAME, text, {}))


def _avro() -> Values:
    return SchemaValues(
        POLICIES, ROOT, SingleSchemaRule(compile_avro_content(schema_file_of_format(Format.AVRO).read_text()))
    )


def _protobuf() -> Values:
    return SchemaValues(POLICIES, ROOT, SingleSchemaRule(protobuf_content(), b"\0"))


VALUES: dict[Format, Callable[[], Values]] = {
    Format.JSON: lambda: JsonValues(ROOT),
    Format.AVRO: _avro,
    Format.PROTOBUF: _protobuf,
}
