"""An expression is parsed for the names of the headers that it reads with constant keys."""

import pytest

from sluicegate.validation.rules.cel.rule import IsTrue


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("'a' in headers", {b"a"}),
        ("headers['a'] == 'x' && headers.b != 'y'", {b"a", b"b"}),
        ("has(headers.a) ? headers['é'] == '1' : true", {b"a", "é".encode()}),
        ("'a' in headers && ['x'].all(name, headers['b'] != name)", {b"a", b"b"}),
        ("size(value) > 0", set()),
        ("headers.size() > 0", None),
        ("headers.all(name, name != 'a')", None),
        ("headers[topic] == 'a'", None),
        ("'a' in headers && topic in headers", None),
        ("[headers].size() == 1", None),
    ],
)
def test_header_names_lists_only_constant_header_keys(expression: str, names: set[bytes] | None) -> None:
    assert IsTrue(expression).header_names == names
