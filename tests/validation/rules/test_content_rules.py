"""Every kind of rule in the configuration becomes rules, and these stay within their stated cost."""

from collections.abc import Mapping
from time import thread_time_ns
from typing import Any

import pytest

from sluicegate.config.content_keys import ContentKeys
from sluicegate.config.keys import each_key_of, section_of, unwrapped
from sluicegate.config.loading import read_section
from sluicegate.config.rules import Rule as RuleKeys
from sluicegate.protocol.records.scan import is_compiled
from sluicegate.validation.rules.content_rules import CONTENT_RULES
from sluicegate.validation.rules.from_keys import INLINE_RULES, parts_of
from sluicegate.validation.rules.rule import INLINE_STEPS, RecordRule
from tests.validation.rules.records import record
from tests.validation.rules.steps import steps_of

WRITTEN: Mapping[str, tuple[Any, ...]] = {"json": ({}, {"duplicate_keys": "reject"})}
"""The tested values of a section. They are required if the section has keys without a default, or keys that change its
cost."""
MADE_ELSEWHERE = ("schema",)
"""The proxy's rule maker, which reads files and sends requests to registries, makes these (tests/proxy/reload,
tests/registry)."""
KEYS = {key.name: key for key in each_key_of(ContentKeys) if key.name not in MADE_ELSEWHERE}

_BYTES = 1 << 20
_REPEATED = (
    b"[",
    b"{",
    b'{"a":',
    b'"',
    b'"a",',
    b"\\",
    b",",
    b";",
    b"\n",
    b"\r\n",
    b'",\n"',
    b"0",
    b"a",
    b" ",
    b"\0",
    b"\xff",
)
_ITEMS = (b"[]", b"{}", b"1", b"-1e9", b'""', b'{"a":1}', b'{"a":1,"a":1}', b'"' + b"a" * 1000 + b'"')
HOSTILE = {
    **{f"{part!r}, repeated": (part * _BYTES)[:_BYTES] for part in _REPEATED},
    **{f"a list of {item[:20]!r}": b"[" + (item + b",") * (_BYTES // (len(item) + 1)) + item + b"]" for item in _ITEMS},
}
"""Values of about 1 MiB that cost a reader the most per byte. For a new kind, add values that are costly for it."""
_STEP_NS, _BASE_NS = 100, 5_000_000
_TOLERANCE = 20 if is_compiled() else 2000
"""Machines differ, and this is not a benchmark. A rule without its bound takes a thousand times its stated cost."""


def example_keys(name: str) -> tuple[Any, ...]:
    """Return valid values for a key of the section `value`."""
    section = section_of(KEYS[name].annotation)
    if section is None:
        return (True,) if unwrapped(KEYS[name].annotation) is bool else (1,)
    needed = [key.name for key in each_key_of(section) if key.is_required]
    assert name in WRITTEN or not needed, f"add valid values for {name} to WRITTEN in this file; it requires {needed}"
    return WRITTEN.get(name, ({},))


def rules_of(name: str, written: Any) -> list[RecordRule]:
    return list(parts_of(read_section(RuleKeys, {"name": "r", "value": {name: written}}), INLINE_RULES))


@pytest.mark.parametrize("name", KEYS)
def test_each_value_condition_creates_a_rule(name: str) -> None:
    where = "content_rules.py" if section_of(KEYS[name].annotation) is not None else "from_keys.py"
    for written in example_keys(name):
        assert rules_of(name, written), (
            f"config/content_keys.py takes `value: {{{name}: {written}}}`, but it becomes no rule: register its kind "
            f"in {where} (validation/rules/)"
        )


def test_each_registered_rule_kind_can_be_configured() -> None:
    unknown = set(CONTENT_RULES) - set(KEYS)

    assert not unknown, f"CONTENT_RULES has {unknown}, which config/content_keys.py has no section for: add one"


@pytest.mark.parametrize("name", CONTENT_RULES)
def test_every_registered_rule_kind_declares_is_costly(name: str) -> None:
    for rule in rules_of(name, example_keys(name)[0]):
        assert isinstance(getattr(rule, "is_costly", None), bool), (
            f"{type(rule).__name__} has no is_costly. True: records for which fault() spends more than INLINE_STEPS go "
            "to the rules process. False promises that there are none"
        )


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("name", KEYS)
def test_rules_on_hostile_values_take_no_longer_than_their_declared_cost(name: str, what: str) -> None:
    sent = record(HOSTILE[what])
    for rule in (rule for written in example_keys(name) for rule in rules_of(name, written)):
        kind = f"{type(rule).__name__} (`{name}`)"
        began = thread_time_ns()
        steps = steps_of(rule.fault, sent)
        counted = thread_time_ns()
        assert counted - began <= _BASE_NS * _TOLERANCE, (
            f"{kind}: counting takes too long for {what}; spend before the work"
        )
        if steps > INLINE_STEPS:
            assert getattr(rule, "is_costly", False), (
                f"{kind} says {steps} steps for {what}, more than INLINE_STEPS: make it is_costly, so that it can be "
                "stopped"
            )
            continue
        rule.fault(sent)
        took = thread_time_ns() - counted
        assert took <= _BASE_NS + steps * _STEP_NS * _TOLERANCE, (
            f"{kind} takes {took / 1e6:.0f} ms for {what}, and spends {steps} steps of 100 ns: spend in fault() what "
            "any bytes make it do, and make it is_costly if that may be much"
        )
