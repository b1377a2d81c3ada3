"""Rules of one's own, from a distribution that is installed."""

import sys
from pathlib import Path

import pytest

from sluicegate.validation.rules.custom_rule import CustomRuleUnusable, custom_rule
from sluicegate.validation.rules.rule import Outage
from tests.validation.rules.records import record

SOURCE = """
from sluicegate.validation.rules.rule import Outage, Part

class Begins:
    parts = Part.VALUE
    is_slow = False
    def __init__(self, options): self.begins = options["begins"].encode()
    def fault(self, record):
        if record.value == b"divide": return 1 / 0
        if record.value == b"out": raise Outage("the other side is away")
        if record.value == b"odd": return 7
        return None if record.value.startswith(self.begins) else "it begins with something else " + "x" * 1000

def no_parts(options): return object()
"""
ENTRY_POINTS = (
    "[sluicegate.rules]\nbegins = begins_rule:Begins\nbare = begins_rule:no_parts\ngone = begins_rule:nothing\n"
)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As pip would leave it."""
    (tmp_path / "begins_rule.py").write_text(SOURCE)
    info = tmp_path / "begins_rule-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: begins-rule\nVersion: 1\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "begins_rule", raising=False)


@pytest.mark.usefixtures("installed")
def test_it_is_made_with_its_options_and_asked() -> None:
    rule = custom_rule("begins", {"begins": "a"})

    assert rule.fault(record(b"abc")) is None
    words = rule.fault(record(b"bcd"))
    assert words is not None
    assert words.startswith("it begins with something else")
    assert len(words) == 500


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"divide", r"the rule begins failed: ZeroDivisionError at begins_rule\.py:9"),
        (b"out", "the other side is away"),
        (b"odd", "the rule begins gave int instead of words or None"),
    ],
)
def test_an_exception_in_a_custom_rule_is_no_verdict(value: bytes, said: str) -> None:
    with pytest.raises(Outage, match=said):
        custom_rule("begins", {"begins": "a"}).fault(record(value))


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("entry_point", "said"),
    [
        ("other", "no entry point other of sluicegate.rules is installed here; there is bare, begins, gone"),
        ("begins", "begins cannot be made: KeyError"),
        ("gone", "gone cannot be made: AttributeError"),
        ("bare", "bare has no attribute parts of the type Part"),
    ],
)
def test_a_custom_rule_that_cannot_be_created_is_an_error(entry_point: str, said: str) -> None:
    with pytest.raises(CustomRuleUnusable, match=said):
        custom_rule(entry_point, {})
