"""No policy of a topic is weaker than the operator's floor, whatever the files of teams have."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.protocol.integers import LONG_MAX
from sluicegate.validation.cluster_settings import ClusterSettings
from sluicegate.validation.floor import Floor
from sluicegate.validation.from_keys import rulebook_of
from sluicegate.validation.policy import EXEMPT, Fix, Framing, Rehearsed, TimestampType, TopicPolicy
from sluicegate.validation.rulebook import Rulebook, Suspended
from sluicegate.validation.rules.rule import Client, Mode
from tests.config.reading import SMALLEST, loaded, problems
from tests.docs.test_policies import NOW, Sent, validated
from tests.wire.batches import Rec

AFTER = "message.timestamp.after.max.ms"
HOUR = 3_600_000
FLOOR = f"""floor:
  - {{match: "audit*"}}
  - match: "*"
    {AFTER}: 1h
    max.message.bytes: 1MB
    rules: [{{name: keyed, key: {{required: true}}}}]
"""
STRICTNESS = [Mode.OBSERVE, Mode.FIX, Mode.REJECT, Mode.QUARANTINE]
FRAMINGS = [Framing.BROKER, Framing.SAFE, Framing.STRICT]
BOUNDS = st.sampled_from([0, 5, 3_600_000, LONG_MAX])
SIZES = st.sampled_from([None, 100, 1_000_000])


def book(text: str) -> Rulebook:
    return rulebook_of(loaded(SMALLEST + text).config)


def result(rulebook: Rulebook, topic: str, **record: Any) -> str:
    given = {"time": NOW, "key": b"k", "value": b"v"} | record
    found = validated(rulebook, Sent(topic, (Rec(given["time"], given["key"], given["value"]),)))
    return "rejected" if found.rejected else "observed" if found.observed else "accepted"


def test_a_floor_that_rejects_is_enforced_for_all_clients() -> None:
    text = "topics: [{match: orders, enforce: {percent: 0}}, {match: audit, enforce: {percent: 0}}]\n"
    rulebook = book(FLOOR + text)

    assert rulebook.of("orders").enforced is None
    assert rulebook.of("audit").enforced is not None
    assert any(
        "topics[0].enforce a part of the clients is weaker" in line for line in loaded(SMALLEST + FLOOR + text).warnings
    )


POLICIES = st.builds(
    TopicPolicy,
    st.sampled_from(TimestampType),
    BOUNDS,
    BOUNDS,
    st.booleans(),
    SIZES,
    st.booleans(),
    st.sampled_from([Mode.OBSERVE, Mode.REJECT, Mode.QUARANTINE]),
    st.sampled_from([None, Rehearsed((1,), ())]),
    st.sampled_from([None, Fix.NOW]),
    framing=st.sampled_from(FRAMINGS),
)
FLOORS = st.builds(
    Floor, BOUNDS, BOUNDS, st.booleans(), SIZES, st.sampled_from([Mode.OBSERVE, Mode.REJECT]),
    st.sampled_from([None, *FRAMINGS[1:]]),
)  # fmt: skip


@given(POLICIES, FLOORS)
def test_each_value_is_as_strict_as_the_floors_and_the_topics(policy: TopicPolicy, floor: Floor) -> None:
    found = floor.under(policy)

    assert found.checked
    assert STRICTNESS.index(found.mode) >= STRICTNESS.index(floor.mode)
    assert found.before_max_ms <= floor.before_max_ms and found.after_max_ms <= floor.after_max_ms
    if min(floor.before_max_ms, floor.after_max_ms) < LONG_MAX:
        assert found.timestamp_type is TimestampType.CREATE_TIME
    assert found.compacted or not floor.compacted
    assert floor.max_message_bytes is None or (found.max_message_bytes or LONG_MAX) <= floor.max_message_bytes
    assert floor.framing is None or FRAMINGS.index(found.framing) >= FRAMINGS.index(floor.framing)
    if policy.checked:
        assert STRICTNESS.index(found.mode) >= STRICTNESS.index(policy.mode)
        assert found.before_max_ms <= policy.before_max_ms and found.after_max_ms <= policy.after_max_ms
        assert (found.max_message_bytes or LONG_MAX) <= (policy.max_message_bytes or LONG_MAX)
        assert FRAMINGS.index(found.framing) >= FRAMINGS.index(policy.framing)
        assert (found.fix, found.rehearsed, found.dead_letters) == (policy.fix, policy.rehearsed, policy.dead_letters)
    assert floor.under(found) == found


WEAK_ENTRIES = [
    "{match: t, checks: none}",
    "{match: t, mode: observe}",
    "{match: t, mode: mark}",
    f"{{match: t, {AFTER}: 30d}}",
    "{match: t, message.timestamp.type: LogAppendTime}",
    "{match: t, rules: []}",
    "{match: t, rules: [{name: own, value: {required: true}, mode: observe}]}",
    "{match: t, quarantine: t.dead}",
    "{match: t, framing: broker, samples: true}",
    "{match: x}",
]


@pytest.mark.parametrize("entry", WEAK_ENTRIES)
def test_no_entry_switches_the_floor_off(entry: str) -> None:
    rulebook = book(f"{FLOOR}topics: [{entry}]")

    assert result(rulebook, "t", key=None) == "rejected"
    assert result(rulebook, "t", time=NOW + 2 * 3_600_000) == "rejected"
    assert result(rulebook, "t", value=Random(1).randbytes(2_000_000)) == "rejected"
    assert result(rulebook, "t") == "accepted"


def test_a_fix_repairs_what_the_floor_would_reject() -> None:
    found = validated(
        book(f"{FLOOR}topics: [{{match: t, fix: {{timestamp: now}}}}]"),
        Sent("t", (Rec(NOW + 2 * 3_600_000, b"k", b"v"),)),
    )

    assert not found.rejected and set(found.fixed) == {(0, 0)}


def test_the_rules_of_both_apply_the_floors_first() -> None:
    rules = book(f"{FLOOR}topics: [{{match: t, rules: [{{name: own, value: {{required: true}}}}]}}]").of("t").rules

    assert rules is not None and [rule.name for rule in rules.rules] == ["keyed", "own"]


def test_an_entry_with_match_alone_is_an_exception() -> None:
    rulebook = book(f"{FLOOR}topics: [{{match: audit, checks: none}}]")

    assert result(rulebook, "audit", key=None) == "accepted"
    assert rulebook.of("audit-2") == TopicPolicy()


@pytest.mark.parametrize(
    ("floor", "defaults", "team", "mode"),
    [
        ("observe", "reject", "checks: none", "observed"),
        ("observe", "reject", "mode: observe", "observed"),
        ("observe", "observe", "mode: reject", "rejected"),
        (None, "observe", "checks: none", "observed"),
        (None, "observe", "mode: observe", "observed"),
        (None, "reject", "mode: observe", "rejected"),
        ("reject", "observe", "mode: observe", "rejected"),
    ],
)
def test_the_mode_of_the_floor_is_that_of_the_defaults_unless_it_has_one(
    floor: str | None, defaults: str, team: str, mode: str
) -> None:
    own = "" if floor is None else f", mode: {floor}"
    rulebook = book(
        f"defaults: {{mode: {defaults}}}\nfloor: [{{match: '*', cleanup.policy: compact{own}}}]\n"
        f"topics: [{{match: t, {team}}}]"
    )

    assert result(rulebook, "t", key=None) == mode


def test_the_clusters_settings_are_applied_after_the_floor() -> None:
    rulebook = book(FLOOR).with_settings({"t": ClusterSettings(TimestampType.LOG_APPEND_TIME, after_max_ms=5)})

    assert rulebook.of("t").timestamp_type is TimestampType.LOG_APPEND_TIME
    assert rulebook.of("t").after_max_ms == 5


def test_an_exemption_of_the_operator_is_above_the_floor() -> None:
    assert book(f"{FLOOR}exempt: [{{client_id: mirror}}]").exempts(Client("a:1", "mirror"))


def test_rules_of_the_floor_may_depend_on_the_client() -> None:
    assert book(FLOOR).in_file.depends_on_client
    assert not book("floor: [{match: '*', cleanup.policy: compact}]").in_file.depends_on_client


def test_topics_of_one_entry_share_a_policy() -> None:
    rulebook = book(FLOOR)

    assert rulebook.of("a") is rulebook.of("b")


def test_a_rule_with_the_name_of_a_floors_rule_is_an_error() -> None:
    rule = "rules: [{name: keyed, value: {required: true}}]"

    assert problems(f"{SMALLEST}{FLOOR}defaults: {{{rule}}}\ntopics:\n  - {{match: t, {rule}}}\n") == [
        "c.yaml:9: defaults.rules[0].name: a rule of floor[1] is named keyed too; names must be unique",
        "c.yaml:11: topics[0].rules[0].name: a rule of floor[1] is named keyed too; names must be unique",
    ]


def test_each_key_that_is_weaker_than_the_floor_is_a_warning() -> None:
    entries = "".join(f"  - {entry}\n" for entry in (*WEAK_ENTRIES, "{match: audit, checks: none}"))
    found = loaded(f"{SMALLEST}{FLOOR}topics:\n{entries}violations: {{file: v.jsonl}}\n").warnings

    assert [words.partition(" which applies")[0] for words in found if "weaker" in words] == [
        f"c.yaml:{line}: topics[{line - 10}].{key} is weaker than floor[1] (c.yaml:5),"
        for line, key in [
            (10, "checks none"),
            (11, "mode observe"),
            (12, "mode mark"),
            (13, f"{AFTER} {30 * 86_400_000}"),
            (14, "message.timestamp.type LogAppendTime"),
        ]
    ]


def test_an_exemption_for_topics_leaves_their_floor_in_force() -> None:
    """The same as `checks: none` for these clients; the cluster's settings and a suspension apply to what is left."""
    rulebook = book(f"{FLOOR}exempt: [{{client_id: mirror, topics: [orders, audit]}}]\ndefaults: {{framing: strict}}\n")
    mirror, other = Client("a:1", "mirror"), Client("a:1", "app")
    settings = ClusterSettings(TimestampType.LOG_APPEND_TIME)

    assert rulebook.of("audit").for_client(mirror) is EXEMPT
    floor = rulebook.of("orders").for_client(mirror)
    assert (floor.checked, floor.after_max_ms, floor.framing, floor.mode) == (True, HOUR, Framing.SAFE, Mode.REJECT)
    assert rulebook.of("orders").for_client(other).framing is Framing.STRICT
    assert rulebook.of("payments").for_client(mirror).framing is Framing.STRICT
    on_cluster = rulebook.with_settings({"orders": settings}).of("orders").for_client(mirror)
    assert on_cluster.timestamp_type is TimestampType.LOG_APPEND_TIME
    suspended = rulebook.with_suspended(Suspended(everywhere=True))
    assert suspended.of("orders").for_client(mirror).mode is Mode.OBSERVE
    assert suspended.of("audit").for_client(mirror) is EXEMPT
