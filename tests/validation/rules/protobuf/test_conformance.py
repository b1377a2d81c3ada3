"""Descriptor sets and messages in protovalidate's conformance suite get the expected verdicts.

scripts/protovalidate_conformance.py packs the suite, whose expectations are the oracle.
"""

import json
import lzma
import os
from base64 import b64decode
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("protovalidate", reason="protovalidate is not installed")

from sluicegate.validation.rules.protobuf.schema import ProtobufContent, protobuf_content
from sluicegate.validation.rules.rule import SchemaError, StepBudget
from sluicegate.validation.rules.schemas.content import ExpressionOfSchema, SchemaUnusable
from tests.validation.rules.records import record

_FILE = os.environ.get("SLUICEGATE_PROTOVALIDATE_SUITE") or Path(__file__).parent / "conformance.json.xz"
PACKED = json.loads(lzma.decompress(Path(_FILE).read_bytes()))
FAILED = {"compilation_error", "runtime_error"}
# Their timestamps are relative to the time at which the suite was packed.
OF_A_MOMENT = tuple(f"standard_rules/well_known_types/timestamp: {rule}" for rule in ("gt_now/", "lt_now/", "within/"))
CASES = [case for case in PACKED["cases"] if not case[0].startswith(OF_A_MOMENT)]


@cache
def content_of(schema: int, message: str) -> tuple[ProtobufContent, ExpressionOfSchema | None]:
    content = protobuf_content(b64decode(PACKED["schemas"][schema]), message)
    try:
        return content, content.constraints()
    except SchemaUnusable:
        return content, None


def verdict_on_data(schema: int, message: str, data: bytes) -> str:
    """Return `success`, an id of a rule, or `error`."""
    content, constraints = content_of(schema, message)
    assert content.fault(data, StepBudget()) is None
    if constraints is None:
        return "error"
    try:
        said = constraints.fault(record(data))
    except SchemaError:
        return "error"
    if said is None:
        return "success"
    return "error" if said.endswith(" cannot be evaluated") else said[said.rindex("(") + 1 : -1]


def is_expected_text(found: str, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return found in {each[:78] for each in wanted}
    return found == ("error" if wanted in FAILED else wanted)


@pytest.mark.long
def test_protovalidate_conformance_cases_give_the_expected_verdicts() -> None:
    others = [
        (name, found, wanted)
        for name, schema, message, data, wanted in CASES
        if not is_expected_text(found := verdict_on_data(schema, message, b64decode(data)), wanted)
    ]

    assert others == []
    assert len(CASES) > 2_500
