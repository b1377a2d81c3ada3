"""Expressions read records, describe their faults, and are rejected if they are invalid."""

import pytest

from sluicegate.config.values.topic_pattern import compile_expression
from sluicegate.validation.rules.cel.rule import IsTrue
from sluicegate.validation.rules.cel.runtime import MAX_CHARACTERS, ExpressionUnusable
from sluicegate.validation.rules.rule import Client, Header, Part, RuledRecord
from tests.validation.rules.records import record

ORDER = record(
    b'{"amount": 12.5, "lines": [{"qty": 1}, {"qty": 2}], "state": "NEW"}',
    b"o-1",
    ((b"tenant", b"acme"), (b"bin", b"\xff")),
)
LACKS = "the record lacks a field that the expression reads"
OTHER = "the record has a value of a type or size that the expression cannot use"


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
        "timestamp(timestamp / 1000).getFullYear() == 2026 && timestamp(timestamp / 1000).getHours('UTC') >= 0",
        "client.id == 'orders-app' && client.software == 'librdkafka' && client.principal != 'User:ANONYMOUS'",
    ],
)
def test_accepts_records_for_which_the_expression_is_true(expression: str) -> None:
    assert IsTrue(expression).fault(ORDER) is None


@pytest.mark.parametrize(
    ("value", "kind"),
    [(b"{}", "map"), (b"[]", "list"), (b'"a"', "string"), (b"1", "int"), (b"1.5", "double"), (b"true", "bool")],
)
def test_each_json_value_has_exactly_one_cel_type(value: bytes, kind: str) -> None:
    for name in ("map", "list", "string", "int", "double", "bool", "bytes", "null_type"):
        words = IsTrue(f"type(value) == {name}").fault(record(value))
        assert (words is None) == (name == kind)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("value.amount > 100", "not true of the record: value.amount > 100"),
        ("value.price > 0", f"{LACKS} (field price): value.price > 0"),
        ("headers.other == ''", LACKS),
        ("value.state > 0", OTHER),
        ("1 / (value.lines[0].qty - 1) == 1", OTHER),
        ("value.lines[7].qty == 1", OTHER),
        ("value.amount", "the expression returns double instead of true or false of the record"),
        ("value.lines", "the expression returns list instead of true or false of the record"),
        ("value.state", "the expression returns string instead of true or false of the record"),
    ],
)
def test_cel_violation_names_the_expression(expression: str, said: str) -> None:
    words = IsTrue(expression).fault(ORDER)

    assert words is not None
    assert said in words


@pytest.mark.parametrize(
    ("expression", "value", "key"),
    [
        ("value.email.matches('.+@.+')", b'{"email": null}', b""),
        ("value.email.matches('.+@.+')", b'{"email": 7}', b""),
        ("value.email.matches('.+@.+')", b"{}", b""),
        ("value.email.matches('.+@.+')", b"7", b""),
        ("value.email.matches('.+@.+')", None, b""),
        ("value.email.matches('.+@.+')", b"\xff\xfe", b""),
        ("key.startsWith('k')", b"{}", None),
        ("key.startsWith('k')", b"{}", b"\xff"),
        ("size(value.x) > 0", b'{"x": 1}', b""),
        ("size(value.x) > 0", b'{"x": null}', b""),
        ("int(value.x) > 0", b'{"x": "1.5"}', b""),
        ("int(value.x) > 0", b'{"x": 1e300}', b""),
        ("int(value.x) > 0", b'{"x": []}', b""),
        ("double(value.x) > 0.0", b'{"x": {}}', b""),
        ("timestamp(value.x) > timestamp(0)", b'{"x": "yesterday"}', b""),
        ("timestamp(value.x) > timestamp(0)", b'{"x": "2026-02-30T00:00:00Z"}', b""),
        ("timestamp(value.x) > timestamp(0)", b'{"x": 1e10}', b""),
        ("duration(value.x) > duration('0s')", b'{"x": "1 hour"}', b""),
        ("string(value.x) == ''", b'{"x": {}}', b""),
        ("value.x + 1 > 0", b'{"x": 9223372036854775807}', b""),
        ("value.x + 1 > 0", b'{"x": "1"}', b""),
        ("value.x * 2.0 > 0.0", b'{"x": 1}', b""),
        ("value.x[0] == 1", b'{"x": {"0": 1}}', b""),
        ("value.x['a'] == 1", b'{"x": [1]}', b""),
        ("value.x.all(i, i > 0)", b'{"x": 7}', b""),
        ("value.x && true", b'{"x": 1}', b""),
        ("!value.x", b'{"x": null}', b""),
        ("value.x ? true : true", b'{"x": "true"}', b""),
        ("value", b"1", b""),
        ("value.x", b'{"x": "true"}', b""),
        ("headers[key] == ''", b"{}", None),
        ("value.x in value.y", b'{"x": 1, "y": 1}', b""),
    ],
)
def test_cel_type_error_is_a_violation_not_an_outage(expression: str, value: bytes | None, key: bytes | None) -> None:
    words = IsTrue(expression).fault(record(value, key))

    assert words is not None
    assert expression in words
    assert "yesterday" not in words


def test_cel_value_is_bytes_if_not_json_and_null_if_null() -> None:
    assert IsTrue("value == b'plain'").fault(record(b"plain")) is None
    assert IsTrue("value == null").fault(record(None)) is None
    assert IsTrue("value.amount > 0").fault(record(b"plain")) is not None


def test_cel_skips_a_schema_id_only_before_json() -> None:
    positive = IsTrue("value.amount > 0")
    assert positive.fault(record(b'\0\0\0\0\x07{"amount": 1}')) is None
    assert positive.fault(record(b'\0\0\0\0\x07{"amount": 0}')) is not None
    for data in (b"\0\0\0\0\x07\x02ab", b"\0\0\0\0", b"\0\0\0\0\x07", b"\0" * 100, b"\x01\0\0\0\x07{}"):
        shown = "".join(rf"\x{byte:02x}" for byte in data)
        assert IsTrue(f"value == b'{shown}'").fault(record(data)) is None


@pytest.mark.parametrize(
    ("expression", "value", "key"),
    [
        # a string's size is the number of its code points (language definition, "String and Bytes Values")
        ("size(value.t) == 2", '{"t": "éé"}'.encode(), b""),
        ("value.t.size() == 1 && size(key) == 1", '{"t": "\U0001f600"}'.encode(), "\U0001f600".encode()),
        ("size(value.t) == 3", b'{"t": "a\\u0000b"}', b""),
        ("size(value) == 3", b"\xffab", b""),
        # a string does not end at a zero byte
        ("value.t != 'a' && value.t == 'a\\u0000b'", b'{"t": "a\\u0000b"}', b""),
        ("value['a\\u0000b'] == 1 && !('a' in value)", b'{"a\\u0000b": 1}', b""),
        ("[value.l[0], value.l[1].t] == ['\\u0000', '\\u0000x']", b'{"l": ["\\u0000", {"t": "\\u0000x"}]}', b""),
        ("key == 'a\\u0000b' && key.endsWith('b')", b"{}", b"a\0b"),
        ("value == b'\\x00\\xff' && size(value) == 2", b"\0\xff", b""),
        ("key == b'\\xff\\x00\\xfe'", b"{}", b"\xff\0\xfe"),
        # integers of up to 64 bits stay integers, and all numbers are compared by value
        ("value.x == 9223372036854775807 && type(value.x) == int", b'{"x": 9223372036854775807}', b""),
        ("value.x > 9223372036854775807 && value.x == 18446744073709551615u", b'{"x": 18446744073709551615}', b""),
        ("value.x > 18446744073709551615u && type(value.x) == double", b'{"x": 36893488147419103232}', b""),
        ("value.x < -9223372036854770000 && type(value.x) == double", b'{"x": -9223372036854775809}', b""),
        ("value.x == 1 && value.y == 1.0 && value.x == value.y", b'{"x": 1, "y": 1.0}', b""),
        ("value.x == 2.0 && double(value.x) * 1.5 == 3.0", b'{"x": 2}', b""),
        # the last of two equal keys counts, as in JSON readers
        ("value.x == 2", b'{"x": 1, "x": 2}', b""),
        ("timestamp(value.x) == timestamp('2026-01-01T00:00:00Z')", b'{"x": "2026-01-01T01:00:00+01:00"}', b""),
    ],
)
def test_expressions_see_json_values_as_cel_values(expression: str, value: bytes, key: bytes) -> None:
    assert IsTrue(expression).fault(record(value, key)) is None


@pytest.mark.parametrize(
    "headers",
    [
        ((b"\xff\xfe", b"x"), (b"tenant", b"acme")),
        ((b"tenant", b"acme"), (b"\xc3", None)),
        ((b"tenant", b"other"), (b"tenant", b"\xff"), (b"tenant", b"acme")),
        ((b"tenant", b"acme"), (b"", b""), (b"a\0b", b"\0")),
    ],
)
def test_cel_expression_finds_a_header_among_any_others(headers: tuple[Header, ...]) -> None:
    assert IsTrue("headers.tenant == 'acme'").fault(record(b"{}", b"", headers)) is None


def test_cel_headers_have_text_names_and_the_last_value_of_each_name() -> None:
    headers: tuple[Header, ...] = ((b"\xff", b"1"), (b"a\0b", b"c\0d"), (b"a", b"1"), (b"a", None), (b"b", b"\xff\0"))
    seen = record(b"{}", b"", headers)

    for expression in (
        "size(headers) == 3",
        "headers['a\\u0000b'] == 'c\\u0000d'",
        "headers.a == null",
        "headers.b == b'\\xff\\x00'",
    ):
        assert IsTrue(expression).fault(seen) is None


def test_cel_client_attributes_accept_any_characters() -> None:
    client = Client("127.0.0.1", "a\0b", None, None, "User:\ud800")
    seen = RuledRecord("t", 0, 0, 0, None, None, (), client)

    assert IsTrue("client.id == 'a\\u0000b' && client.id != 'a'").fault(seen) is None
    assert IsTrue("client.software == null && client.principal == 'User:?'").fault(seen) is None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b'{"x": 1e400, "y": 1}', "with a number outside the range of a double, or with a lone surrogate"),
        (
            b'{"x": ' + b"9" * 5000 + b', "y": 1}',
            "with a number outside the range of a double, or with a lone surrogate",
        ),
        (b'{"x": "\\ud800", "y": 1}', "with a number outside the range of a double, or with a lone surrogate"),
        (b'{"x": ' + b"[" * 100 + b"]" * 100 + b', "y": 1}', "nested more than 100 levels deep"),
    ],
)
def test_json_that_cel_cannot_represent_violates_every_expression(value: bytes, said: str) -> None:
    assert IsTrue("value.y == 1").fault(record(value)) == (
        f"the value is JSON {said}, which no expression can read: value.y == 1"
    )


def test_cel_evaluates_json_nested_a_hundred_levels_deep() -> None:
    assert IsTrue("value != 1").fault(record(b"[" * 100 + b"]" * 100)) is None


def test_cel_rule_requires_only_record_parts_named_in_the_expression() -> None:
    assert IsTrue("value.a == 1").parts == Part.VALUE
    assert IsTrue("topic == 'a' && timestamp > 0").parts == Part.NONE
    assert IsTrue("key == 'a' && 'b' in headers").parts == Part.KEY | Part.HEADERS
    assert IsTrue("[1].all(value, value > 0)").parts == Part.NONE


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("value.a >", "line 1, column 10: Syntax error: mismatched input '<EOF>'"),
        ("value.a > 1 &&\n  = 2", "line 2, column 3: Syntax error"),
        ("", "Syntax error"),
        ("valeu.a > 0", "undeclared reference to 'valeu.a'; there are client, headers, key"),
        ("value.all(x, y > 0)", "line 1, column 14: undeclared reference to 'y'; there are client"),
        ("nonsense(value)", "line 1, column 9: undeclared reference to 'nonsense'; nonsense is not available: "),
        ("value.nonsense()", "undeclared reference to 'nonsense'; nonsense is not available: "),
        ("math.nonsense(value)", "undeclared reference to 'math'; math.nonsense is not available: "),
        ("valeu.startsWith('a')", "undeclared reference to 'valeu'; there are client, headers, key"),
        ("value.string() == ''", "undeclared reference to 'string'; string exists, but with other arguments$"),
        ("client.name == 'a'", "client has no name; it has id, software, version, principal, address"),
        ("size(value.a)", "the expression returns int instead of true or false"),
        ("'a'", "the expression returns string instead of true or false"),
        ("value.map(a, a)", "the expression returns list instead of true or false"),
        ("timestamp > 'a'", r"no matching overload for '_>_' applied to '\(int, string\)'"),
        ("topic && true", r"no matching overload for '_&&_' applied to '\(string, bool\)'"),
        ("1 + 'a' == 2", "no matching overload"),
        ("value.a.matches('(')", r"not a regular expression that RE2 accepts: missing \): \("),
        ("timestamp(value.a).getHours(value.zone) > 0", "getHours takes only a literal time zone"),
        ("true" + " && true" * MAX_CHARACTERS, "longer than 2000 characters"),
        ("(" * 1000 + "true" + ")" * 990, "nested more than 32 levels deep"),
        ("value" + ".a" * 995 + " == 1", "nested more than 32 levels deep"),
        ("1" + "+1" * 900 + " > 0", "nested more than 32 levels deep"),
        ("value.all(a," * 140 + "true" + ")" * 140, "nested more than 32 levels deep"),
    ],
)
def test_invalid_cel_expression_is_rejected_on_load(expression: str, said: str) -> None:
    with pytest.raises(ExpressionUnusable, match=said):
        IsTrue(expression)


@pytest.mark.parametrize("pattern", ["a+", "^[^@]+@[^@]+[.][a-z]{2,}$", r"\\d{4}-\\d\\d", "(?i)straße"])
@pytest.mark.parametrize("text", ["aa", "x@y.org", "on 2026-01-01", "STRASSE", "STRAßE", ""])
def test_cel_matches_finds_a_pattern_anywhere_as_re2_does(pattern: str, text: str) -> None:
    found = compile_expression(pattern.replace("\\\\", "\\")).search(text) is not None

    assert (IsTrue(f"key.matches('{pattern}')").fault(record(b"", text.encode())) is None) == found
