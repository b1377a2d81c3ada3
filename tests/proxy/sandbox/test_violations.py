"""A sandbox's violations are listed and grouped, and some of them fail the run."""

import pytest

from sluicegate.proxy.reporting.events.reasons_reference import ENTRIES
from sluicegate.proxy.sandbox.violations import (
    BadAllowance,
    Violation,
    ViolationList,
    allowance_of,
    allowances,
    grouped,
)
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.verdict import Reason
from tests.config.reading import SMALLEST, load_text
from tests.proxy.reporting.events.test_violation_writer import REHEARSAL, one_violation

RULES = SMALLEST + "topics: [{match: a, rules: [{name: keyed, key: {required: true}}]}]"


@pytest.mark.parametrize(
    ("mode", "fails"),
    [
        (Mode.REJECT, True),
        (Mode.QUARANTINE, True),
        *((mode, False) for mode in (Mode.OBSERVE, Mode.FIX, Mode.MARK, Mode.COPY)),
    ],
)
def test_a_violation_fails_the_run_if_its_batch_is_rejected(mode: Mode, fails: bool) -> None:
    violations = ViolationList()

    violations.write(one_violation()._replace(mode=mode))

    (found,) = violations.listed()
    assert (found.fails, violations.failures, violations.count) == (fails, int(fails), 1)


def test_violation_of_rehearsed_bound_is_not_listed() -> None:
    violations = ViolationList()
    violations.write(REHEARSAL)
    assert (violations.listed(), violations.count) == ([], 0)


@pytest.mark.parametrize(
    ("allowed", "topic", "is_allowed"),
    [
        ("t=timestamp_in_future", "t", True),
        ("t*=timestamp_in_future", "t-1", True),
        ("t=timestamp_in_future", "t-1", False),
        ("t=null_key", "t", False),
    ],
)
def test_an_allowed_violation_is_listed_and_does_not_fail_the_run(allowed: str, topic: str, is_allowed: bool) -> None:
    violations = ViolationList([allowance_of(allowed)])

    violations.write(one_violation(topic=topic))

    (found,) = violations.listed()
    assert (found.is_allowed, violations.failures) == (is_allowed, int(not is_allowed))


def test_violation_code_of_a_rule_is_the_rule_name() -> None:
    violations = ViolationList([allowance_of("t=keyed")])

    violations.write(one_violation()._replace(reason=Reason.RULE_VIOLATED, rules=(("keyed", 1),)))

    (found,) = violations.listed()
    assert (found.code, found.is_allowed) == ("keyed", True)
    assert "keyed" in found.fix


@pytest.mark.parametrize(
    ("allowed", "code", "is_allowed"),
    [
        (["t=keyed"], "signed", False),
        (["t=signed"], "keyed", False),
        (["t=signed", "t=keyed"], "keyed", True),
        ([], "keyed", False),
    ],
)
def test_batch_is_allowed_only_if_each_violated_rule_is_allowed(
    allowed: list[str], code: str, is_allowed: bool
) -> None:
    violations = ViolationList([allowance_of(text) for text in allowed])

    violations.write(one_violation()._replace(reason=Reason.RULE_VIOLATED, rules=(("keyed", 1), ("signed", 2))))

    (found,) = violations.listed()
    assert (found.code, found.is_allowed, found.codes) == (code, is_allowed, ["keyed", "signed"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("payments", "payments: expected TOPIC=CODE"),
        ("=null_key", "=null_key: expected TOPIC=CODE"),
        ("payments=", "payments=: expected TOPIC=CODE"),
        ("payments=nul_key", "no reason and no rule of the configuration is named nul_key"),
        ("/(/=null_key", "/(/=null_key: "),
    ],
)
def test_invalid_allowance_is_rejected(text: str, words: str) -> None:
    with pytest.raises(BadAllowance) as error:
        allowances([text], load_text(RULES).config)
    assert str(error.value).startswith(words)


def test_rule_names_are_valid_codes_in_allowances() -> None:
    (allowed,) = allowances(["a=keyed"], load_text(RULES).config)
    assert allowed.covers("a", "keyed")


def test_violations_round_trip_through_json() -> None:
    violations = ViolationList()
    for partition in range(3):
        violations.write(one_violation(partition=partition))

    report = violations.as_json(after=1)

    assert (report["count"], report["failures"]) == (3, 3)
    assert [shown["number"] for shown in report["violations"]] == [2, 3]
    assert [Violation.from_json(shown) for shown in report["violations"]] == violations.listed(after=1)


def test_violations_are_grouped_by_client_topic_and_code() -> None:
    violations = ViolationList()
    for client, topic in (("a", "t"), ("b", "t"), ("a", "t"), ("a", "u")):
        violations.write(one_violation(client_id=client, topic=topic))

    assert [[violation.number for violation in group] for group in grouped(violations.listed())] == [[1, 3], [2], [4]]


def test_list_of_violations_is_bounded_while_counts_are_complete() -> None:
    violations = ViolationList()
    event = one_violation()
    for _ in range(10_005):
        violations.write(event)

    assert (len(violations.listed()), violations.count, violations.failures) == (10_000, 10_005, 10_005)


@pytest.mark.parametrize("reason", ENTRIES)
def test_fix_text_contains_no_links(reason: Reason) -> None:
    violations = ViolationList()
    violations.write(one_violation()._replace(reason=reason))
    (found,) = violations.listed()
    assert found.fix
    assert [part for part in ("](", ".md") if part in found.fix] == []
