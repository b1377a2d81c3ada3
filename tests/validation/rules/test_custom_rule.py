"""Custom rules are loaded from an installed distribution."""

import sys
from pathlib import Path
from typing import Any

import pytest

from sluicegate.config.files.yaml_source import read_yaml
from sluicegate.config.loading import load
from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.validation.from_keys import limits_of, rulebook_of
from sluicegate.validation.produce.request import validate_request
from sluicegate.validation.rules.custom_rule import CustomRuleUnusable, custom_rule
from sluicegate.validation.rules.rule import Outage, Part, RuledRecord, SchemaError
from sluicegate.validation.rules.rule_check import check_rule
from sluicegate.validation.validated_request import ValidatedRequest
from tests.validation.rules.records import record
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import produce_body, topic_data

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
        if record.value == b"exit": raise SystemExit(record.value)
        return None if record.value.startswith(self.begins) else "it begins with something else " + "x" * 1000

class Old:
    needs = Part.VALUE
    is_slow = False
    def __init__(self, options): pass
    def complaint(self, record): return None

class WithItsOwnWords(Begins):
    # Its own attributes may have any name.
    def __init__(self, options): self.needs, self.complaint = "money", 3

def no_parts(options): return object()
"""
ENTRY_POINTS = """[sluicegate.rules]
begins = begins_rule:Begins
bare = begins_rule:no_parts
gone = begins_rule:nothing
old = begins_rule:Old
words = begins_rule:WithItsOwnWords
"""
FILE = """
upstream: {bootstrap: ["127.0.0.1:9"]}
listen: {bootstrap: "127.0.0.1:9"}
topics:
  - match: t
    rules: [{name: ours, entry_point: begins, options: {begins: a}, on_outage: forward MORE}]
"""
_NOW = 1_800_000_000_000


@pytest.fixture
def installed_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a distribution with a custom rule, like pip."""
    (tmp_path / "begins_rule.py").write_text(SOURCE)
    info = tmp_path / "begins_rule-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: begins-rule\nVersion: 1\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "begins_rule", raising=False)


@pytest.mark.usefixtures("installed_rule")
def test_custom_rule_gets_its_options_and_its_violation_text_is_truncated() -> None:
    rule = custom_rule("begins", {"begins": "a"})

    assert rule.fault(record(b"abc")) is None
    words = rule.fault(record(b"bcd"))
    assert words is not None
    assert words.startswith("it begins with something else")
    assert len(words) == 500


@pytest.mark.usefixtures("installed_rule")
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"divide", r"the custom rule begins failed \(ZeroDivisionError at begins_rule\.py:9\) on a record of orders"),
        (b"exit", r"the custom rule begins failed \(SystemExit at begins_rule\.py:12\) on a record of orders"),
        (b"odd", "the custom rule begins returned int instead of a string or None on a record of orders"),
    ],
)
def test_exception_in_a_custom_rule_is_a_permanent_fault(value: bytes, said: str) -> None:
    with pytest.raises(SchemaError, match=said) as raised:
        custom_rule("begins", {"begins": "a"}).fault(record(value))
    assert value.decode() not in str(raised.value)


@pytest.mark.usefixtures("installed_rule")
def test_a_custom_rule_may_report_an_outage_of_its_dependency() -> None:
    with pytest.raises(Outage, match="the other side is away"):
        custom_rule("begins", {"begins": "a"}).fault(record(b"out"))


def validate_batch(value: bytes, more: str = "") -> ValidatedRequest:
    """Validate a batch of two records: one with `value`, and a correct one."""
    config = load(read_yaml(FILE.replace("MORE", more), "f"), {}).config
    policy = rulebook_of(config).policy_of("t")
    data = batch([Rec(_NOW, b"k", value), Rec(_NOW, b"k", b"abc")])
    request = walk_produce_request(bytearray(produce_body(9, [topic_data("t", (0, data))])), 9, 0, 100)
    budget = DecompressionBudget(1 << 24, 100, lambda: None)
    return validate_request(request, {}, lambda _: policy, limits_of(config), lambda: _NOW, Decompressor(), budget)


@pytest.mark.usefixtures("installed_rule")
def test_exception_in_a_custom_rule_does_not_forward_the_batch() -> None:
    """KIP-467: a record is rejected with INVALID_RECORD (87), a fatal error that names it."""
    found = validate_batch(b"divide").rejected[0, 0]

    assert (found.code, [bad.index for bad in found.bad_records]) == (87, [0])
    assert "ZeroDivisionError" in found.bad_records[0].message
    assert not validate_batch(b"out").rejected
    assert not validate_batch(b"divide", ", on_schema_error: forward").rejected
    assert validate_batch(b"divide", ", on_schema_error: retriable").rejected[0, 0].code == 7
    assert not validate_batch(b"divide", ", mode: observe").rejected


@pytest.mark.usefixtures("installed_rule")
def test_custom_rule_may_use_old_attribute_names_for_other_purposes() -> None:
    assert custom_rule("words", {}).parts


def test_check_rule_reports_old_attribute_names() -> None:
    class OldAttributeNames:
        parts = Part.VALUE
        is_slow = False

        def complaint(self, _record: RuledRecord) -> str | None:
            return None

    old: Any = OldAttributeNames()
    with pytest.raises(AssertionError, match="OldAttributeNames has complaint, which is now fault: rename it"):
        check_rule(old)


@pytest.mark.usefixtures("installed_rule")
@pytest.mark.parametrize(
    ("entry_point", "said"),
    [
        (
            "other",
            "no entry point other of sluicegate.rules is installed here; installed: bare, begins, gone, old, words",
        ),
        ("begins", "begins cannot be created: KeyError"),
        ("gone", "gone cannot be created: AttributeError"),
        ("old", "old has needs, which is now parts, complaint, which is now fault: rename it"),
        ("bare", "bare has no attribute parts of the type Part"),
    ],
)
def test_custom_rule_that_cannot_be_created_raises_an_error(entry_point: str, said: str) -> None:
    with pytest.raises(CustomRuleUnusable, match=said):
        custom_rule(entry_point, {})
