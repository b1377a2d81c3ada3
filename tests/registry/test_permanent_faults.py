"""Schemas and references that no compiler accepts are permanent faults, and never an outage (`on_outage: forward`)."""

from collections.abc import Iterator

import pytest

from sluicegate.proxy.registry.confluent_api import Reference, SchemaText
from sluicegate.proxy.registry.schema_compiler import RulesProcessCompiler, compile_inline
from sluicegate.proxy.rules_process.rule_limits import RuleLimits
from sluicegate.proxy.rules_process.rules_process import RulesProcess
from sluicegate.proxy.scheduling.wait_budget import WaitBudget
from sluicegate.validation.rules.schemas.content import SchemaLanguage, SchemaUnusable

AVRO, JSON, PROTOBUF = SchemaLanguage.AVRO, SchemaLanguage.JSON, SchemaLanguage.PROTOBUF
PROTO = 'syntax = "proto3"; message M { string a = 1; }'


def proto_with_references(*names: str) -> SchemaText:
    return SchemaText(PROTOBUF, PROTO, tuple(Reference(name, PROTO) for name in names))


HOSTILE = {
    "a file and a folder of one name": proto_with_references("x", "x/y"),
    "a folder and a file of one name": proto_with_references("x/y", "x"),
    "a name of 300 characters": proto_with_references("n" * 300),
    "a path of 5000 characters": proto_with_references("n/" * 2500 + "n"),
    "a name out of the folder": proto_with_references("../x.proto"),
    "an absolute name": proto_with_references("/x.proto"),
    "an empty name": proto_with_references(""),
    "a dot": proto_with_references("."),
    "a NUL": proto_with_references("x\0y"),
    "half a surrogate pair in a name": proto_with_references("x\ud800.proto"),
    "half a surrogate pair in a text": SchemaText(PROTOBUF, PROTO + " // \ud800", ()),
    "half a surrogate pair in a reference": SchemaText(PROTOBUF, PROTO, (Reference("a", "// \udfff"),)),
    "a slash at the end": proto_with_references("x/", "x/y"),
    "the name of the schema itself as a folder": proto_with_references("registered-schema.proto/x"),
    "imports that form a cycle": SchemaText(
        PROTOBUF, 'import "a";', (Reference("a", 'import "b";'), Reference("b", 'import "a";'))
    ),
    "Protobuf nested deeply": SchemaText(PROTOBUF, "message M {" * 5_000 + "}" * 5_000, ()),
    "Protobuf with a NUL": SchemaText(PROTOBUF, "\0", ()),
    "Avro with half a surrogate pair": SchemaText(AVRO, '{"type": "record", "name": "\ud800", "fields": []}', ()),
    "Avro nested deeply": SchemaText(AVRO, '{"type": "array", "items": ' * 5_000 + '"int"' + "}" * 5_000, ()),
    "Avro with a huge number": SchemaText(AVRO, '{"type": "fixed", "name": "F", "size": ' + "9" * 5_000 + "}", ()),
    "Avro that is no JSON": SchemaText(AVRO, "{", ()),
    "JSON Schema nested deeply": SchemaText(JSON, '{"not": ' * 5_000 + "{}" + "}" * 5_000, ()),
    "JSON Schema with half a surrogate pair": SchemaText(JSON, '{"pattern": "\ud800"}', ()),
    "JSON Schema with a broken pattern": SchemaText(JSON, '{"pattern": "["}', ()),
    "JSON Schema that refers to nothing": SchemaText(JSON, '{"$ref": "#/nowhere"}', ()),
}
ACCEPTED = {"a slash at the end", "Avro with half a surrogate pair"}
"""Schemas that compilers may accept."""


@pytest.fixture(scope="module")
def process() -> Iterator[RulesProcess]:
    made = RulesProcess(RuleLimits(2.0, 256 << 20), WaitBudget())
    yield made
    made.close()


@pytest.mark.parametrize("case", HOSTILE)
def test_invalid_schema_raises_schema_unusable_in_the_rules_process(case: str, process: RulesProcess) -> None:
    try:
        RulesProcessCompiler(process)(HOSTILE[case])
    except SchemaUnusable as error:
        assert "\ud800" not in str(error)
    else:
        assert case in ACCEPTED


@pytest.mark.parametrize("case", [case for case in HOSTILE if "deeply" not in case])
def test_invalid_schema_raises_schema_unusable_without_a_rules_process(case: str) -> None:
    try:
        compile_inline(HOSTILE[case])
    except SchemaUnusable as error:
        assert str(error)
    else:
        assert case in ACCEPTED
