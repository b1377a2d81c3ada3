"""Errors of an evaluation name the field and the kind, and never contain text from the record."""

import json
from typing import Any

import pytest

from sluicegate.validation.rules.cel.rule import IsTrue
from tests.validation.rules.records import record

LACKS = "the record lacks a field that the expression reads"
OTHER = "the record has a value of a type or size that the expression cannot use"


@pytest.mark.parametrize(
    ("expression", "value", "text"),
    [
        ("value.n > 1", {}, f"{LACKS} (field n)"),
        ("value[value.k] > 1", {"k": "secret"}, LACKS),
        ("value.n / value.d > 1", {"n": 1, "d": 0}, f"{OTHER} (division by zero: value.d)"),
        ("value.n % value.d > 1", {"n": 1, "d": 0}, f"{OTHER} (division by zero: value.d)"),
        ("value.n + 1 > 1", {"n": 2**63 - 1}, f"{OTHER} (a number overflows: value.n + 1)"),
        ("uint(value.n) > 1u", {"n": -1}, f"{OTHER} (a number is out of range: uint(value.n))"),
        ("value.n > 1", {"n": "secret"}, f"{OTHER} (string > int is not defined: value.n > 1)"),
        ("value.n.startsWith('a')", {"n": 1}, f"{OTHER} (int.startsWith(string) is not defined: value.n.startsWith)"),
        (
            "value.n in value.m",
            {"n": 1, "m": 2},
            f"{OTHER} (`in` with a value that is not a list or map: value.n in value.m)",
        ),
        ("-value.n > 1", {"n": "secret"}, f"{OTHER} (-string is not defined: -value.n)"),
        ("value.n.m > 1", {"n": "secret"}, f"{OTHER} (a field of a value that is not an object: value.n.m)"),
        ("value.n[3] > 1", {"n": [1]}, f"{OTHER} (an index out of range: value.n[3])"),
        ("int(value.n) > 1", {"n": "secret"}, f"{OTHER} (a conversion fails: int(value.n))"),
        ("timestamp(value.n) > timestamp(0)", {"n": "secret"}, f"{OTHER} (a conversion fails: timestamp(value.n))"),
        (
            "value.n.matches(value.p)",
            {"n": "a", "p": "(secret"},
            f"{OTHER} (a pattern that is not a regular expression: value.p)",
        ),
        ("value.n + value.m > value.n + 1", {"n": 1, "m": "secret"}, f"{OTHER} (int + string is not defined)"),
        ("value.n * value.m * 2 > 1", {"n": 2**62, "m": 1}, f"{OTHER} (a number overflows)"),
        ("1 / value.n + 2 / (value.n + 0) > 1", {"n": 0}, f"{OTHER} (division by zero)"),
        ("value.n.all(x, x > 1)", {"n": 5}, f"{OTHER} (a loop over a value that is not a list or map: value.n)"),
    ],
)
def test_cel_evaluation_error_names_its_kind(expression: str, value: Any, text: str) -> None:
    assert IsTrue(expression).fault(record(json.dumps(value).encode())) == f"{text}: {expression}"


def test_cel_error_reports_that_the_value_is_not_json() -> None:
    text = f"{OTHER} (a field of a value that is not an object); the value is not JSON: value.n > 1"

    assert IsTrue("value.n > 1").fault(record(b"plain")) == text
