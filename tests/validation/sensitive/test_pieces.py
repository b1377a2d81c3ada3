"""Long texts are read in pieces. Wherever a piece ends, the result is that of the whole text and of Python's json."""

import hmac
import json
from hashlib import sha256
from random import Random
from typing import Any

import pytest

from sluicegate.validation.sensitive import json_fields, texts
from sluicegate.validation.sensitive.edits import Unmaskable
from sluicegate.validation.sensitive.json_fields import mask_json
from sluicegate.validation.sensitive.paths import Action, FieldPolicy, path_of, tree_of
from sluicegate.validation.sensitive.writing import ValueWriter

KEY = b"0123456789abcdef"
WHOLE = 1 << 30
SIZES = range(8, 25)  # the shortest size that has room for an escape and for a word such as false
ROOT = tree_of(
    [
        FieldPolicy("m", (("mail",), path_of("any.*"), path_of("n\u00e9\U0001f600.x")), Action.MASK, "*\U0001f600*"),
        FieldPolicy("h", (("key",),), Action.HASH, key=KEY),
    ]
)
TEXTS = [
    json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    for ascii_only, indent in ((True, None), (True, 7), (False, None))
    for value in (
        {"mail": "plain " * 9 + 'q"\\/\b\f\n\r\t', "key": "a\u00e9\u20ac\U0001f600" * 7, "n": -12345.678901e-100},
        {"any": {"k" * 40: "v", "\U0001f600" * 9: "w", "\n" * 20: None}, "n\u00e9\U0001f600": {"x": "y" * 30}},
        [[], {}, [True, False, None, 0, 1234567890123456789012345678901234567890, 1e300], {"key": ["*", [""]]}],
    )
] + [
    rb'{"key":"\ud83d\ude00 \ud83d \ude00 \ud83d\ud83d\ude00\ude00 \\ud83d\\ude00 a\ud83d","mail":"\ud83d"}',
    rb'{"mail":"*\ud83d\ude00*", "key":' + b" " * 50 + b'"x"}' + b"\n" * 40,
]
BROKEN = [
    b'{"a":1' + b"0" * 60 + b".}",
    b'{"a":-' + b"0" * 60 + b"}",
    b'{"a":1' + b"0" * 60 + b"e+}",
    b'{"a":1' + b"0" * 60 + b"x}",
    b'{"a":1' + b"0" * 60 + b".5.}",
    b'{"a":"' + b"x" * 60 + b"\\x" + b'"}',
    b'{"a":"' + b"x" * 60 + b"\\ud8z0" + b'"}',
    b'{"a":"' + b"x" * 60 + b"\n" + b'"}',
    b'{"a":"' + b"x" * 60,
    b'{"a":"' + "\u20ac".encode() * 20 + b'\xe2\x82"}',
    b'{"a":"' + "\U0001f600".encode() * 20 + b"\xf0\x9f\x98",
    b'{"a":"' + b"x" * 60 + b'\xed\xa0\x80"}',
    b'{"a":' + b" " * 60 + b"}",
]


def masked_text(text: bytes, monkeypatch: pytest.MonkeyPatch, piece_bytes: int) -> bytes | str:
    monkeypatch.setattr(json_fields, "PIECE_BYTES", piece_bytes)
    monkeypatch.setattr(texts, "PIECE_BYTES", piece_bytes)
    writer = ValueWriter(text, 1 << 24, lambda _work: None)
    try:
        mask_json(text, 0, (ROOT,), writer, lambda _work: None)
    except Unmaskable as error:
        return str(error)
    return writer.written() or text


def is_json(text: bytes) -> bool:
    def reject_constant(_name: str) -> None:
        raise ValueError

    try:
        json.loads(text.decode(), parse_constant=reject_constant)
    except ValueError:
        return False
    return True


def expected_value(value: Any) -> Any:
    """Return what a reader of the masked text finds."""
    if isinstance(value, list):
        return [expected_value(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for name, inner in value.items():
        if name in ("mail", "key"):
            found[name] = mask_fields(inner, name)
        elif name == "any":
            found[name] = {key: mask_fields(each, "mail") for key, each in inner.items()}
        elif name == "n\u00e9\U0001f600":
            found[name] = {key: mask_fields(each, "mail") if key == "x" else each for key, each in inner.items()}
        else:
            found[name] = expected_value(inner)
    return found


def mask_fields(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return [mask_fields(each, name) for each in value]
    if value is None:
        return None
    if name == "mail":
        return "*\U0001f600*"
    return hmac.new(KEY, value.encode("utf-8", "surrogatepass"), sha256).hexdigest()


@pytest.mark.parametrize("text", TEXTS)
def test_json_masking_does_not_depend_on_piece_boundaries(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = expected_value(json.loads(text))

    found = [masked_text(text, monkeypatch, size) for size in (WHOLE, *SIZES)]

    assert json.loads(found[0]) == wanted
    assert set(found) == {found[0]}


@pytest.mark.parametrize("text", BROKEN)
def test_json_error_does_not_depend_on_piece_boundaries(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_json(text)

    found = {masked_text(text, monkeypatch, size) for size in (WHOLE, *SIZES)}

    assert len(found) == 1
    assert isinstance(found.pop(), str)


def test_mutated_json_has_the_same_outcome_for_any_piece_boundaries(monkeypatch: pytest.MonkeyPatch) -> None:
    random, pieces = Random(58), [b'"', b"\\", b",", b"}", b"0", b"-", b".", b"e5", b" ", b"\1", b"\\ud83d", b"\x98"]
    taken = 0
    for _ in range(3_000):
        text = bytearray(random.choice(TEXTS))
        for _ in range(random.randrange(1, 3)):
            at = random.randrange(len(text))
            text[at : at + random.randrange(3)] = random.choice(pieces)
        whole = masked_text(bytes(text), monkeypatch, WHOLE)

        assert masked_text(bytes(text), monkeypatch, random.choice(SIZES)) == whole
        if not is_json(bytes(text)):
            assert isinstance(whole, str)
        taken += isinstance(whole, bytes)
    assert taken > 200


@pytest.mark.parametrize("size", SIZES)
def test_the_first_invalid_utf_8_byte_equals_that_of_python(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "PIECE_BYTES", size)
    random = Random(size)
    for _ in range(500):
        data = bytearray("a\u00e9\u20ac\U0001f600".encode() * random.randrange(9))
        for _ in range(random.randrange(2)):
            data.insert(random.randrange(len(data) + 1), random.choice(b"\x80\xbf\xc3\xe2\xed\xf0\xf4\xff"))
        try:
            data.decode()
            wanted = None
        except UnicodeDecodeError as error:
            wanted = error.start

        assert texts.first_not_utf8(bytes(data), 0, len(data), lambda _work: None) == wanted
