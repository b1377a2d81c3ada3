"""Expressions over records: what they see, what they say, and how long they may take."""

import json
from time import monotonic

import pytest

from sluicegate.validation.rules.expression import MAX_CHARACTERS, ExpressionUnusable, IsTrue
from sluicegate.validation.rules.rule import Outage, Part
from tests.validation.rules.records import record

ORDER = record(
    b'{"amount": 12.5, "lines": [{"qty": 1}, {"qty": 2}], "state": "NEW"}',
    b"o-1",
    ((b"tenant", b"acme"), (b"bin", b"\xff")),
)


@pytest.mark.parametrize(
    "expression",
    [
        "value.amount > 0",
        "value.amount > 12 && value.state in ['NEW', 'SENT']",
        "value.lines.all(line, line.qty > 0)",
        "key == 'o-1' && key.startsWith('o-')",
        "headers.tenant == 'acme' && headers['bin'] == b'\\xff'",
        "!('other' in headers) && !has(value.note)",
        "timestamp > 1700000000000 && topic == 'orders' && partition == 3",
        "client.id == 'orders-app' && client.software == 'librdkafka' && client.principal != 'User:ANONYMOUS'",
    ],
)
def test_what_is_true_passes(expression: str) -> None:
    assert IsTrue(expression).complaint(ORDER) is None


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("value.amount > 100", "not true of the record: value.amount > 100"),
        ("value.price > 0", "the record lacks what the expression asks for: value.price > 0"),
        ("value.state > 0", "the record has something of another type or size than the expression can use"),
        ("1 / (value.lines[0].qty - 1) == 1", "of another type or size"),
        ("value.lines[7].qty == 1", "the record lacks"),
    ],
)
def test_what_is_not_is_told_with_the_expression(expression: str, said: str) -> None:
    words = IsTrue(expression).complaint(ORDER)

    assert words is not None
    assert said in words


def test_a_value_that_is_no_json_is_bytes_and_a_null_one_null() -> None:
    assert IsTrue("value == b'plain'").complaint(record(b"plain")) is None
    assert IsTrue("value == null").complaint(record(None)) is None
    assert IsTrue("value.amount > 0").complaint(record(b"plain")) is not None


def test_json_behind_a_schemas_id_is_read_and_nothing_else_is() -> None:
    positive = IsTrue("value.amount > 0")
    assert positive.complaint(record(b'\0\0\0\0\x07{"amount": 1}')) is None
    assert positive.complaint(record(b'\0\0\0\0\x07{"amount": 0}')) is not None
    for data in (b"\0\0\0\0\x07\x02ab", b"\0\0\0\0", b"\0\0\0\0\x07", b"\0" * 100, b"\x01\0\0\0\x07{}"):
        shown = "".join(rf"\x{byte:02x}" for byte in data)
        assert IsTrue(f"value == b'{shown}'").complaint(record(data)) is None


def test_only_what_is_named_is_needed() -> None:
    assert IsTrue("value.a == 1").needs == Part.VALUE
    assert IsTrue("topic == 'a' && timestamp > 0").needs == Part.NONE
    assert IsTrue("key == 'a' && 'b' in headers").needs == Part.KEY | Part.HEADERS


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("value.a >", "parse"),
        ("", "parse"),
        ("valeu.a > 0", "unknown name valeu; there are client, headers, key"),
        ("value.all(x, y > 0)", "unknown name y"),
        ("true" + " && true" * MAX_CHARACTERS, "longer than 2000 characters"),
        ("(" * 1000 + "true" + ")" * 990, "brackets deep"),
        ("!" * 1999 + "true", "brackets deep"),
    ],
)
def test_what_cannot_be_used_is_told_when_it_is_read(expression: str, said: str) -> None:
    with pytest.raises(ExpressionUnusable, match=said):
        IsTrue(expression)


@pytest.mark.parametrize("expression", ["value.amount", "nonsense(value)", "size(value.state)"])
def test_an_expression_that_is_no_condition_is_no_verdict(expression: str) -> None:
    with pytest.raises(Outage, match="expression"):
        IsTrue(expression).complaint(ORDER)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("value.all(a, value.all(b, a <= b || a > b))", list(range(40_000))),
        ("[1,2].all(x, value.all(a, value.all(b, value.all(c, a + b + c >= 0))))", list(range(1000))),
        ("value.all(a, value[0].contains('bb'))", ["a" * 500_000] * 2 + ["a"] * 40_000),
        ("value.map(a, value.map(b, value)).size() > 0", list(range(5000))),
    ],
)
def test_loops_end_before_they_begin_where_a_record_makes_them_long(expression: str, value: object) -> None:
    rule = IsTrue(expression)
    begin = monotonic()

    words = rule.complaint(record(json.dumps(value).encode()))

    assert words is not None
    assert words.startswith("the record has too many items for the loops")
    assert monotonic() - begin < 5


def test_loops_over_what_is_usual_are_fine() -> None:
    value = json.dumps({"lines": [{"sku": f"sku-{i}", "qty": i} for i in range(1, 300)]}).encode()

    assert IsTrue("value.lines.all(a, value.lines.exists(b, a.sku == b.sku))").complaint(record(value)) is None
    assert IsTrue("value.lines.all(a, a.qty > 0)").complaint(record(value)) is None


def test_deep_json_is_no_trouble() -> None:
    assert IsTrue("value != 1").complaint(record(b"[" * 1000 + b"]" * 1000)) is None
    assert IsTrue("value != 1").complaint(record(b"[" * 100 + b"]" * 100)) is None
