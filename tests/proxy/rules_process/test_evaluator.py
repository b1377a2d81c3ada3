"""The host of the rules process loads libraries before it forks, so that later measurements only include a schema."""

import subprocess
import sys

import pytest

from sluicegate.proxy.rules_process.messages import EvaluatorKind

_LOADS = """
import sys
from sluicegate.proxy.rules_process.evaluator import load_libraries
from sluicegate.proxy.rules_process.messages import EvaluatorKind
load_libraries(frozenset({EvaluatorKind[sys.argv[1]]}))
print(*sys.modules)
"""
LOADED = {
    EvaluatorKind.JSON: {"sluicegate.validation.rules.json.schema", "jsonschema_rs", "orjson"},
    EvaluatorKind.AVRO: {"sluicegate.validation.rules.avro.schema"},
    EvaluatorKind.SERIALIZED_AVRO: {"sluicegate.validation.rules.avro.schema"},
    EvaluatorKind.PROTOBUF: {"sluicegate.validation.rules.protobuf.indexed_schema", "google.protobuf.message_factory"},
    EvaluatorKind.PROTO_SOURCE: {"grpc_tools._protoc_compiler"},
    EvaluatorKind.CONTENT_RULE: {"sluicegate.validation.rules.json.syntax"},
    EvaluatorKind.EXPRESSION: {"sluicegate.validation.rules.cel.rule", "sluicegate.validation.rules.cel.runtime"},
    EvaluatorKind.JSON_EXPRESSION: {"jsonschema_rs", "orjson", "cel_expr_python.cel"},
    EvaluatorKind.AVRO_EXPRESSION: {"sluicegate.validation.rules.avro.cel_types", "cel_expr_python.cel"},
    EvaluatorKind.PROTOBUF_EXPRESSION: {"google.protobuf.message_factory", "cel_expr_python.cel"},
    EvaluatorKind.PROTOBUF_CONSTRAINTS: {"sluicegate.validation.rules.protobuf.constraints", "protovalidate"},
    EvaluatorKind.INLINE_RULES: {
        "sluicegate.validation.rules.cel.inline_rules",
        "jsonschema_rs",
        "cel_expr_python.cel",
    },
    EvaluatorKind.AS_JSON: {"sluicegate.validation.rules.json.schema", "jsonschema_rs", "orjson"},
    EvaluatorKind.CUSTOM_RULE: {"sluicegate.validation.rules.custom_rule", "importlib.metadata"},
}


@pytest.mark.parametrize("kind", EvaluatorKind)
def test_evaluator_loads_libraries_of_its_kind_before_first_request(kind: EvaluatorKind) -> None:
    command = [sys.executable, "-c", _LOADS, kind.name]
    loaded = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout.split()

    assert LOADED[kind] - set(loaded) == set()
    assert "pydantic" not in loaded, "the evaluator must not import the model of the configuration, which takes memory"
