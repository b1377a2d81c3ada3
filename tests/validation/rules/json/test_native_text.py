"""The rule accepts the texts that native code accepts as JSON, and native code accepts ordinary JSON."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.validation.rules.json.plan import HAS_NATIVE, is_ordinary_json
from sluicegate.validation.rules.json.syntax import MOST_DEPTH
from sluicegate.validation.rules.json.text import WELL_FORMED, fault_in
from tests.validation.rules.json.test_syntax import BAD, GOOD, VALUES

pytestmark = pytest.mark.skipif(not HAS_NATIVE, reason="nothing native was compiled")


@pytest.mark.parametrize("text", GOOD)
def test_native_json_check_accepts_valid_json(text: bytes) -> None:
    assert is_ordinary_json(text, MOST_DEPTH)


@pytest.mark.parametrize("text", [text for text, _ in BAD])
def test_native_json_check_rejects_invalid_json(text: bytes) -> None:
    assert not is_ordinary_json(text, MOST_DEPTH)


@pytest.mark.parametrize("depth", [1, 2, 127, 128, MOST_DEPTH])
def test_native_json_rejects_nesting_beyond_the_given_depth(depth: int) -> None:
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        deep = opening * (depth - 1) + (b"[]" if opening == b"[" else b"{}") + closing * (depth - 1)
        assert is_ordinary_json(deep, depth)
        assert not is_ordinary_json(opening + deep + closing, depth)


def test_native_json_check_rejects_deeply_nested_json() -> None:
    assert not is_ordinary_json(b"[" * 600 + b"]" * 600, 1_000_000)


@pytest.mark.parametrize("size", range(40))
@pytest.mark.parametrize("odd", ['"', "\\", "\x1f", "\x7f", "\x80", "é", "😀", "\\u00e9", '\\"', "\ud800"])
def test_native_json_check_detects_unusual_characters_at_every_position(odd: str, size: int) -> None:
    for behind in (0, 1, 40):
        text = b'["' + b"a" * size + odd.encode("utf-8", "surrogatepass") + b"b" * behind + b'"]'
        assert is_ordinary_json(text, 9) == (fault_in(text, 9) == WELL_FORMED)


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_json_that_python_writes_has_the_same_verdict_natively(
    value: Any, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    assert is_ordinary_json(text, MOST_DEPTH) == (fault_in(text, MOST_DEPTH) == WELL_FORMED)


@given(st.binary(max_size=40) | st.text(alphabet='{}[]",:0123.eE+-truefalsn\\u \n\x00é', max_size=20).map(str.encode))
def test_random_bytes_have_the_same_verdict_natively(text: bytes) -> None:
    assert is_ordinary_json(text, 3) == (fault_in(text, 3) == WELL_FORMED)


@given(VALUES, st.data())
def test_mutated_json_has_the_same_verdict_natively(value: Any, data: st.DataObject) -> None:
    text = bytearray(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    for _ in range(data.draw(st.integers(1, 3))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(text)
    assert is_ordinary_json(damaged, MOST_DEPTH) == (fault_in(damaged, MOST_DEPTH) == WELL_FORMED)
