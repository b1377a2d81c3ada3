"""Texts are accepted as JSON according to RFC 8259, and Python's and Rust's readers agree."""

import json
import math
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.validation.rules.json.syntax import MOST_DEPTH, JsonSyntax
from sluicegate.validation.rules.json.text import WELL_FORMED, fault_in
from sluicegate.validation.rules.rule import INLINE_STEPS, Side
from tests.validation.rules.records import record
from tests.validation.rules.steps import steps_of

GOOD = [
    b"{}",
    b"[]",
    b' \t\r\n[1, 2 ,{"a" : null}] \n',
    b'"x\\u00e9\\n\\"\\/\\\\"',
    b'"\\ud800"',  # RFC 8259 allows lone surrogates; a schema can reject them
    b"-0.5e+3",
    b"0",
    b"-0",
    b"1E9",
    b"123456789012345678901234567890",
    b"true",
    b"false",
    b"null",
    b'{"a":{"b":[{},[],""]}}',
    b'{"":0}',
    '"é漢😀\u2028\x7f"'.encode(),
    b'["' + b"a" * 100 + b'"]',
]
BAD = [
    (b"", "empty"),
    (b" \n", "empty"),
    (b"{", "ends before"),
    (b"[1", "ends before"),
    (b'{"a":', "ends before"),
    (b'"a', "ends before"),
    (b'"\\u12', "ends before"),
    (b"tru", "ends before"),
    (b"{} {}", "bytes follow the JSON"),
    (b"1 2", "bytes follow the JSON"),
    (b"{}\0", "bytes follow the JSON"),
    (b"[1,]", "a value was expected"),
    (b'{"a":}', "a value was expected"),
    (b"NaN", "a value was expected"),
    (b"[Infinity]", "a value was expected"),
    (b"-Infinity", "a number"),
    (b"nuxl", "a value was expected"),
    (b"]", "a value was expected"),
    (b"[}", "a value was expected"),
    (b"/*x*/1", "a value was expected"),
    (b"{,}", "a key"),
    (b'{"a":1,}', "a key"),
    (b"{'a':1}", "a key"),
    (b"{1:2}", "a key"),
    (b"{]", "a key"),
    (b'{"a"}', "a colon"),
    (b'{"a" 1}', "a colon"),
    (b'{"a" "b"}', "a colon"),
    (b"[1 2]", "a comma"),
    (b"[1}", "a comma"),
    (b'{"a":1]', "a comma"),
    (b"01", "a number"),
    (b"-", "a number"),
    (b"1.", "a number"),
    (b"1e", "a number"),
    (b"1e+", "a number"),
    (b"--1", "a number"),
    (b'"\x01"', "control character"),
    (b'"\n"', "control character"),
    (b'"\\x"', "escape"),
    (b'"\\u12g4"', "escape"),
    (b'"\xff"', "not UTF-8"),
    (b'"\xc3"', "not UTF-8"),
    (b'"\xc0\x80"', "not UTF-8"),
    (b'"\xed\xa0\x80"', "not UTF-8"),
    (b'"\xe0\x80\x80"', "not UTF-8"),
    (b'"\xf4\x90\x80\x80"', "not UTF-8"),
    (b'"\xf0\x9f\x98', "not UTF-8"),
    (b"\xef\xbb\xbf{}", "byte order mark"),
]


@pytest.mark.parametrize("value", GOOD)
def test_json_syntax_rule_accepts_valid_json(value: bytes) -> None:
    json.loads(value)  # Python's own reader accepts it too

    assert JsonSyntax(Side.VALUE).fault(record(value)) is None


@pytest.mark.parametrize(("value", "said"), BAD)
def test_rejects_invalid_json_with_the_error_position(value: bytes, said: str) -> None:
    words = JsonSyntax(Side.VALUE).fault(record(value))

    assert words is not None
    assert words.startswith("the value is not JSON: ")
    assert said in words


def test_json_syntax_error_names_the_byte_and_quotes_no_content() -> None:
    words = JsonSyntax(Side.KEY).fault(record(key=b'{"secret" "word"}'))

    assert words == "the key is not JSON: a colon was expected (at byte 10)"


def test_json_syntax_rule_accepts_null_value() -> None:
    assert JsonSyntax(Side.VALUE).fault(record(None)) is None


@pytest.mark.parametrize("depth", [1, 2, 62, 63, 64, 65, 126, 127, 128, 200, MOST_DEPTH])
def test_json_syntax_rejects_nesting_beyond_the_maximum_depth(depth: int) -> None:
    rule = JsonSyntax(Side.VALUE, max_depth=depth)
    mixed = b"".join(b'{"a":' if level % 3 else b"[" for level in range(depth))
    closing = b"".join(b"}" if level % 3 else b"]" for level in reversed(range(depth)))

    assert rule.fault(record(b"[" * depth + b"]" * depth)) is None
    assert rule.fault(record(mixed + b"1" + closing)) is None
    words = rule.fault(record(b"[" * (depth + 1) + b"]" * (depth + 1)))
    assert words is not None
    assert "deeper" in words


def test_a_million_brackets_are_rejected_as_too_deep() -> None:
    words = JsonSyntax(Side.VALUE).fault(record(b"[" * 1_000_000))

    assert words is not None
    assert "deeper" in words


@pytest.mark.parametrize(
    "value", [b'{"a":1,"a":2}', b'[{"x":{"a":1,"b":2,"\\u0061":3}}]', b'{"\\ud800":1,"\\ud800":1}']
)
def test_rejects_duplicate_json_keys_if_configured(value: bytes) -> None:
    assert JsonSyntax(Side.VALUE).fault(record(value)) is None
    words = JsonSyntax(Side.VALUE, "reject").fault(record(value))
    assert words == "the value is JSON with a duplicate key in an object; write each key once"


@pytest.mark.parametrize("value", [b'{"a":1,"b":{"a":2}}', b"[1" + b"0" * 5000 + b"]", b"[" * 500 + b"]" * 500])
def test_accepts_json_objects_without_duplicate_keys(value: bytes) -> None:
    assert JsonSyntax(Side.VALUE, "reject", MOST_DEPTH).fault(record(value)) is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


# Eight million bytes of each item exceed the limit on reading costs.
@pytest.mark.parametrize("item", [b"[]", b'{"a":1}', b"1"])
def test_duplicate_key_check_of_large_json_is_costly(item: bytes) -> None:
    rule = JsonSyntax(Side.VALUE, "reject")
    few, many = (b"[" + (item + b",") * count + b"1]" for count in (1_000, 300_000))

    assert steps_of(rule.fault, record(few)) <= INLINE_STEPS < steps_of(rule.fault, record(many))
    assert rule.fault(record(many)) is None
    assert "a duplicate key" in str(rule.fault(record(many[:-1] + b',{"a":1,"a":1}]')))


def test_long_json_text_with_few_items_is_checked_inline() -> None:
    long = b'["' + b"well, [and {so} on]," * 100_000 + b'"]'

    assert steps_of(JsonSyntax(Side.VALUE, "reject").fault, record(long)) <= INLINE_STEPS
    assert steps_of(JsonSyntax(Side.VALUE).fault, record(b"[" + b"1," * 1_500_000 + b"1]")) <= INLINE_STEPS


@pytest.mark.long
@given(VALUES, st.booleans())
def test_accepts_json_written_by_python(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")

    assert (fault_in(text, MOST_DEPTH) == WELL_FORMED) == _python_reads(text)


@given(st.binary(max_size=40) | st.text(alphabet='{}[]",:0123.eE+-truefalsn\\u \n\x00é', max_size=20).map(str.encode))
def test_random_bytes_have_the_same_json_verdict_as_in_python(text: bytes) -> None:
    assert (fault_in(text, MOST_DEPTH) == WELL_FORMED) == _python_reads(text)


@given(VALUES, st.data())
def test_mutated_json_has_the_same_verdict_as_in_python(value: Any, data: st.DataObject) -> None:
    text = bytearray(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    for _ in range(data.draw(st.integers(1, 3))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    validated = fault_in(bytes(text), MOST_DEPTH)

    assert (validated == WELL_FORMED) == _python_reads(bytes(text))
    # orjson rejects half a surrogate pair, and numbers that a double cannot represent
    if b"\\u" not in text and not _has_a_number_beyond_doubles(bytes(text)):
        assert (validated == WELL_FORMED) == _rust_reads(bytes(text))


def _python_reads(text: bytes) -> bool:
    def reject_constant(_constant: str) -> None:
        raise ValueError

    try:
        json.loads(text.decode(), parse_constant=reject_constant, parse_int=str, parse_float=str)
    except ValueError:
        return False
    return True


def _has_a_number_beyond_doubles(text: bytes) -> bool:
    numbers: list[float] = []

    def keep_number(number: str) -> None:
        numbers.append(float(number))

    try:
        json.loads(text.decode(), parse_int=keep_number, parse_float=keep_number)
    except ValueError:
        return False
    return any(map(math.isinf, numbers))


def _rust_reads(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
