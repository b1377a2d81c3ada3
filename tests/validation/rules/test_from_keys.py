"""Every part of a rule in the configuration becomes a rule."""

from contextlib import suppress

import pytest

from sluicegate.config.keys import each_key_of
from sluicegate.config.loading import read_section
from sluicegate.config.rules import Rule
from sluicegate.validation.rules.custom_rule import CustomRuleUnusable
from sluicegate.validation.rules.from_keys import INLINE_RULES, parts_of

ASKS_NOTHING = {"name", "mode", "on_outage", "on_schema_error", "options"}
WRITTEN = {
    "key": {"required": True},
    "value": {"required": True},
    "headers": {"required": ["a"]},
    "batch": {"max_records": 1},
    "time": {"monotonic": True},
    "cel": "timestamp > 0",
    "entry_point": "none_of_this_name",
}


@pytest.mark.parametrize("part", [key.name for key in each_key_of(Rule) if key.name not in ASKS_NOTHING])
def test_each_section_of_a_configured_rule_creates_a_rule(part: str) -> None:
    assert part in WRITTEN, f"add valid values for {part} to WRITTEN in this file"
    keys = read_section(Rule, {"name": "r", "mode": "observe", part: WRITTEN[part]})

    with suppress(CustomRuleUnusable):  # the rule has looked for a schema
        assert [*parts_of(keys, INLINE_RULES)], f"`{part}` has no effect: make a rule from it in from_keys.py"
