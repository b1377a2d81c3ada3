"""Strings of sensitive fields are replaced in the text itself. Python's json is the oracle for valid JSON."""

import hmac
import json
from hashlib import sha256
from random import Random
from typing import Any

import pytest

from sluicegate.validation.sensitive.edits import Unmaskable
from sluicegate.validation.sensitive.json_fields import mask_json
from sluicegate.validation.sensitive.paths import Action, FieldPolicy, path_of, tree_of
from sluicegate.validation.sensitive.writing import ValueWriter

KEY = b"0123456789abcdef"
ROOT = tree_of(
    [
        FieldPolicy("m", tuple(map(path_of, ("a.b", "c", "x.*.y", r"d\.e"))), Action.MASK, '*"*'),
        FieldPolicy("h", (("k",), ("c",)), Action.HASH, key=KEY),
        FieldPolicy("r", (("no",),), Action.REJECT),
    ]
)


def masked_text(text: bytes, most_bytes: int = 1 << 24) -> bytes:
    writer = ValueWriter(text, most_bytes, lambda _work: None)
    mask_json(text, 0, (ROOT,), writer, lambda _work: None)
    return writer.written() or text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{ "a" : {"b":"1" , "z":1.50e3}, "b": "2" }', b'{ "a" : {"b":"*\\"*" , "z":1.50e3}, "b": "2" }'),
        (b'[{"c":"1"},{"c":["2",["3"],null]}]', b'[{"c":"*\\"*"},{"c":["*\\"*",["*\\"*"],null]}]'),
        (b'{"\\u0063":"1","c":"2","C":"3"}', b'{"\\u0063":"*\\"*","c":"*\\"*","C":"3"}'),
        (b'{"x":{"p":{"y":"1"},"q":[{"y":"2"}],"y":"3"}}', b'{"x":{"p":{"y":"*\\"*"},"q":[{"y":"*\\"*"}],"y":"3"}}'),
        (b'{"d.e":"1","d":{"e":"2"}}', b'{"d.e":"*\\"*","d":{"e":"2"}}'),
        (b'{"a":{"b":null},"no":null,"c":""}', b'{"a":{"b":null},"no":null,"c":"*\\"*"}'),
        (b'{"a":{"bb":"1","B":"2"},"aa":{"b":"3"}}', b'{"a":{"bb":"1","B":"2"},"aa":{"b":"3"}}'),
        (b' "s" ', b' "s" '),
    ],
)
def test_json_masking_changes_only_strings(text: bytes, expected: bytes) -> None:
    assert masked_text(text) == expected


@pytest.mark.parametrize("text", ["secret", "", "\u00e9\U0001f600", 'a"\\\n'])
def test_hash_does_not_depend_on_json_string_escapes(text: str) -> None:
    expected = hmac.new(KEY, text.encode(), sha256).hexdigest()

    for written in (json.dumps(text), json.dumps(text, ensure_ascii=False)):
        assert json.loads(masked_text(b'{"k":' + written.encode() + b"}")) == {"k": expected}


@pytest.mark.parametrize(
    ("text", "words", "name"),
    [
        (b'{"c":1}', "the field c is a number", "m"),
        (b'{"c":[true]}', "the field c is a boolean", "m"),
        (b'{"x":{"secret":{"y":{}}}}', r"the field x\.\*\.y is an object", "m"),
        (b'{"no":"x"}', "the field no is not allowed", "r"),
        (b'{"no":[0]}', "the field no is not allowed", "r"),
        (b"[" * 202 + b"]" * 202, "more than 200 levels", None),
        (b'{"a":"\xff"}', "invalid UTF-8 at byte 6", None),
        (b'\xef\xbb\xbf{"c":"1"}', "not valid JSON at byte 0", None),
    ],
)
def test_unmaskable_value_error_names_the_field_without_its_content(text: bytes, words: str, name: str | None) -> None:
    with pytest.raises(Unmaskable, match=words) as caught:
        masked_text(text)

    assert (None if caught.value.fields is None else caught.value.fields.name) == name
    assert "secret" not in str(caught.value)


def _strict(text: bytes) -> Any:
    def reject_constant(_name: str) -> None:
        raise ValueError

    return json.loads(text.decode(), parse_constant=reject_constant)


def test_masking_accepts_only_valid_json_and_changes_only_sensitive_fields() -> None:
    """For mutated texts, masking accepts exactly those that Python reads as JSON, and all other values are
    unchanged."""
    random = Random(7)
    seed = b'{"u":[1,-2.5e-3,{"v":"w\\u00e9","k":null}],"t":true,"a":{"z":"q"},"e":{},"l":[]}'
    pieces = [
        b'"',
        b"\\",
        b",",
        b":",
        b"{",
        b"}",
        b"[",
        b"]",
        b"0",
        b"-",
        b".",
        b"e",
        b" ",
        b"\x01",
        b"u",
        b"null",
        b"\n",
    ]
    taken = 0
    for _ in range(4_000):
        text = bytearray(seed)
        for _ in range(random.randrange(3)):
            at = random.randrange(len(text))
            text[at : at + random.randrange(2)] = random.choice(pieces)
        try:
            expected = _strict(bytes(text))
        except (ValueError, RecursionError):
            with pytest.raises(Unmaskable):
                masked_text(bytes(text))
            continue
        taken += 1
        assert _strict(masked_text(bytes(text))) == expected
    assert taken > 1_000
