"""An expression's rule has the result that CEL's own conformance tests expect: true, false, or an error, which is not
true.

The cases (cel-spec, Apache-2.0) are those in its core files that need no variable and no Protobuf message, and result
in true, false or an error.
"""

import json
from pathlib import Path

import pytest

from sluicegate.validation.rules.cel.rule import IsTrue
from sluicegate.validation.rules.cel.runtime import ExpressionUnusable
from tests.validation.rules.records import record

CASES: dict[str, list[list[str]]] = json.loads((Path(__file__).parent / "cel_conformance.json").read_text())["cases"]


@pytest.mark.parametrize("section", CASES)
def test_cel_conformance_cases_give_the_specified_results(section: str) -> None:
    assert [expression for expression, expected in CASES[section] if _outcome(expression) != expected] == []


def _outcome(expression: str) -> str:
    try:
        words = IsTrue(expression).fault(record(b"{}"))
    except ExpressionUnusable:
        return "error"
    if words is None:
        return "true"
    return "false" if words.startswith("not true of the record") else "error"
