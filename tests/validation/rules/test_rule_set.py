"""A rule set includes the parts that its rules need, and is slow if one of them is slow."""

import tracemalloc

import pytest

from sluicegate.validation.rules import rule_set
from sluicegate.validation.rules.built_in import MonotonicTime, MostRecords
from sluicegate.validation.rules.json.syntax import JsonSyntax
from sluicegate.validation.rules.rule import Client, NamedRule, Part, RecordRule, RuledRecord, Side
from sluicegate.validation.rules.rule_set import RuleSet

JSON, SMALL, ORDER = JsonSyntax(Side.VALUE), MostRecords(7), MonotonicTime()


@pytest.mark.parametrize(
    ("rules", "parts", "when_compiled", "when_not"),
    [
        ([JSON], Part.VALUE, False, True),
        ([JSON, SMALL], Part.VALUE, False, True),
        ([SMALL], Part.NONE, False, False),
        ([SMALL, ORDER], Part.NONE, True, True),
        ([], Part.NONE, False, False),
    ],
)
def test_content_rules_use_the_slow_path_without_compiled_modules(
    rules: list[RecordRule], parts: Part, when_compiled: bool, when_not: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for is_fast, is_slow in ((True, when_compiled), (False, when_not)):
        monkeypatch.setattr(rule_set, "_FAST", is_fast)
        found = RuleSet(NamedRule(f"r{i}", rule) for i, rule in enumerate(rules))
        assert (found.parts, found.is_slow) == (parts, is_slow)


def test_monotonic_time_rule_tracks_many_producers_in_little_memory() -> None:
    """Regression: 20,000 client ids of 32 kB took 640 MB."""
    order = MonotonicTime()
    tracemalloc.start()
    for i in range(300):
        client = Client("a:1", f"{i}" + "x" * 30_000)
        assert order.fault(RuledRecord("t", 0, 0, 5, None, None, (), client)) is None
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    assert kept < 300 * 1_000


def test_monotonic_time_rule_of_a_rule_set_tracks_each_producer() -> None:
    order = MonotonicTime()
    for time, address, bad in ((5, "a:1", False), (4, "a:2", False), (4, "a:1", True), (6, "a:1", False)):
        record = RuledRecord("t", 0, 0, time, None, None, (), Client(address, "x"))
        assert (order.fault(record) is not None) is bad
