"""What the rules of a topic need together, and whether they may be asked on the event loop."""

import pytest

from sluicegate.validation.rules import rule_set
from sluicegate.validation.rules.built_in import MonotonicTime, MostRecords
from sluicegate.validation.rules.json.syntax import JsonSyntax
from sluicegate.validation.rules.rule import NamedRule, Part, Rule, Side
from sluicegate.validation.rules.rule_set import RuleSet

JSON, SMALL, ORDER = JsonSyntax(Side.VALUE), MostRecords(7), MonotonicTime()


@pytest.mark.parametrize(
    ("rules", "needs", "when_compiled", "when_not"),
    [
        ([JSON], Part.VALUE, False, True),
        ([JSON, SMALL], Part.VALUE, False, True),
        ([SMALL], Part.NONE, False, False),
        ([SMALL, ORDER], Part.NONE, True, True),
        ([], Part.NONE, False, False),
    ],
)
def test_what_reads_content_is_slow_where_nothing_is_compiled(
    rules: list[Rule], needs: Part, when_compiled: bool, when_not: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for is_fast, is_slow in ((True, when_compiled), (False, when_not)):
        monkeypatch.setattr(rule_set, "_FAST", is_fast)
        found = RuleSet(NamedRule(f"r{i}", rule) for i, rule in enumerate(rules))
        assert (found.needs, found.is_slow) == (needs, is_slow)
