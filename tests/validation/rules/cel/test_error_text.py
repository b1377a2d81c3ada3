"""Errors of an evaluation name the field and the kind; texts of the record are never in them."""

import json
from typing import Any

import pytest

from sluicegate.validation.rules.cel.rule import IsTrue
from tests.validation.rules.records import record

LACKS = "the record lacks what the expression asks for"
OTHER = "the record has something of another type or size than the expression can use"


@pytest.mark.parametrize(
    ("expression", "value", "text"),
    [
        ("value.n > 1", {}, f"{LACKS} (field n)"),
        ("value[value.k] > 1", {"k": "secret"}, LACKS),
        ("value.n / value.d > 1", {"n": 1, "d": 0}, f"{OTHER} (division by zero)"),
        ("value.n % value.d > 1", {"n": 1, "d": 0}, f"{OTHER} (division by zero)"),
        ("value.n + 1 > 1", {"n": 2**63 - 1}, f"{OTHER} (a number overflows)"),
        ("uint(value.n) > 1u", {"n": -1}, f"{OTHER} (a number is out of range)"),
        ("value.n > 1", {"n": "secret"}, f"{OTHER} (string > int is not defined)"),
        ("value.n.startsWith('a')", {"n": 1}, f"{OTHER} (int.startsWith(string) is not defined)"),
        ("value.n in value.m", {"n": 1, "m": 2}, f"{OTHER} (`in` with something that is no list or map)"),
        ("-value.n > 1", {"n": "secret"}, f"{OTHER} (-string is not defined)"),
        ("value.n.m > 1", {"n": "secret"}, f"{OTHER} (a field of something that is no object)"),
        ("value.n[3] > 1", {"n": [1]}, f"{OTHER} (an index out of range)"),
        ("int(value.n) > 1", {"n": "secret"}, f"{OTHER} (a conversion fails)"),
        ("timestamp(value.n) > timestamp(0)", {"n": "secret"}, f"{OTHER} (a conversion fails)"),
        ("value.n.matches(value.p)", {"n": "a", "p": "(secret"}, f"{OTHER} (a pattern that is no regular expression)"),
        ("value.n.all(x, x > 1)", {"n": 5}, f"{OTHER} (a loop over something that is no list or map)"),
    ],
)
def test_an_error_of_an_evaluation_names_its_kind(expression: str, value: Any, text: str) -> None:
    assert IsTrue(expression).fault(record(json.dumps(value).encode())) == f"{text}: {expression}"
