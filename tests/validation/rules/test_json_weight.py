"""JSON that would be made into too many objects is refused before it is, by every rule that would make them."""

from collections.abc import Callable
from time import thread_time

import pytest

from sluicegate.protocol.records.scan import is_compiled
from sluicegate.validation.rules.expression import IsTrue
from sluicegate.validation.rules.json_schema import json_schema_content
from sluicegate.validation.rules.json_syntax import DuplicateKeys, JsonSyntax
from sluicegate.validation.rules.json_weight import MOST_WEIGHT, is_too_heavy
from sluicegate.validation.rules.rule import Rule
from sluicegate.validation.rules.schema_file import FollowsSchema
from sluicegate.validation.rules.side import Side
from tests.validation.rules.records import record

# Where nothing is compiled the text is looked through byte by byte first.
_MOST_SECONDS = 3 if is_compiled() else 60

# Made where they are used: every process that runs tests reads all files.
HEAVY: dict[str, Callable[[], bytes]] = {
    "lists": lambda: b"[" + b"[]," * 2_000_000 + b"1]",
    "objects": lambda: b"[" + b'{"a":1},' * 1_000_000 + b"1]",
    "numbers": lambda: b"[" + b"1," * 4_000_000 + b"1]",
    "keys": lambda: b"{" + b",".join(b'"%d":1' % i for i in range(1_000_001)) + b"}",
}
LIGHT: dict[str, Callable[[], bytes]] = {
    "numbers": lambda: b"[" + b"3.1415926," * 450_000 + b"1]",
    "keys": lambda: b"{" + b",".join(b'"%d":1' % i for i in range(80_000)) + b"}",
    "colons": lambda: b'["' + b"::::" * 400_000 + b'"]',
    "text": lambda: b'["' + b"well, [and {so} on]," * 400_000 + b'"]',
    "escapes": lambda: b'["' + b'\\",[' * 2_000_000 + b'"]',
    "lists": lambda: b"[" + b"[]," * (MOST_WEIGHT // 11 - 10) + b"1]",
    "small": lambda: b"[" + b"[]," * 100 + b"1]",
}


def schema() -> Rule:
    """One that is asked by what it says, not natively."""
    return FollowsSchema(Side.VALUE, json_schema_content('{"type": ["array", "object"], "contains": {"const": 7}}'))


def unique_keys() -> Rule:
    return JsonSyntax(Side.VALUE, DuplicateKeys.REFUSE)


def expression() -> Rule:
    return IsTrue("size(value) >= 0")


@pytest.mark.parametrize("kind", HEAVY)
@pytest.mark.parametrize("make", [schema, unique_keys, expression])
def test_what_weighs_too_much_is_refused_in_words(make: object, kind: str) -> None:
    assert callable(make)
    value = HEAVY[kind]()
    began = thread_time()
    words = make().complaint(record(value))
    assert "JSON of more items than this rule reads (" in str(words)
    assert thread_time() - began < _MOST_SECONDS


@pytest.mark.parametrize("kind", LIGHT)
def test_what_does_not_passes(kind: str) -> None:
    assert not is_too_heavy(LIGHT[kind]())


def test_syntax_alone_makes_nothing_and_takes_all() -> None:
    assert JsonSyntax(Side.VALUE).complaint(record(HEAVY["numbers"]())) is None


def test_a_schema_that_is_asked_natively_reads_what_weighs_more() -> None:
    numbers = FollowsSchema(Side.VALUE, json_schema_content('{"type": "array", "items": {"type": "integer"}}'))

    assert (numbers.complaint(record(HEAVY["numbers"]())) is None) is is_compiled()


def test_what_is_wrong_in_many_places_is_not_looked_for_in_all() -> None:
    wrong = FollowsSchema(Side.VALUE, json_schema_content('{"items": {"type": "string", "pattern": "x"}}'))

    assert "too large" not in str(wrong.complaint(record(b"[" + b"1," * 100 + b"1]")))
    began = thread_time()
    words = wrong.complaint(record(b"[" + b"1," * 200_000 + b"1]"))
    assert thread_time() - began < _MOST_SECONDS
    assert "does not follow its JSON Schema; it is too large to say where" in str(words)


def test_an_expression_reads_less() -> None:
    value = b"{" + b",".join(b'"%d":1' % i for i in range(20_000)) + b"}"

    assert "reads (50,000" in str(expression().complaint(record(value)))
