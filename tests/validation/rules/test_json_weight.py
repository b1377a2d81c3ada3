"""JSON that would be made into too many objects is rejected before it is, by expressions."""

from collections.abc import Callable
from time import thread_time

import pytest

from sluicegate.protocol.records.scan import is_compiled
from sluicegate.validation.rules.expression import IsTrue
from sluicegate.validation.rules.json_weight import MOST_WEIGHT, is_too_heavy
from sluicegate.validation.rules.rule import Rule
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


def expression() -> Rule:
    return IsTrue("size(value) >= 0")


@pytest.mark.parametrize("kind", HEAVY)
def test_what_weighs_too_much_is_refused_in_words(kind: str) -> None:
    value = HEAVY[kind]()
    began = thread_time()
    words = expression().complaint(record(value))
    assert "JSON of more items than this rule reads (" in str(words)
    assert thread_time() - began < _MOST_SECONDS


@pytest.mark.parametrize("kind", LIGHT)
def test_what_does_not_passes(kind: str) -> None:
    assert not is_too_heavy(LIGHT[kind]())


def test_an_expression_reads_less() -> None:
    value = b"{" + b",".join(b'"%d":1' % i for i in range(20_000)) + b"}"

    assert "reads (50,000" in str(expression().complaint(record(value)))
