"""No topic policy is weaker than the operator's floor, whatever the teams' files contain."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.config.keys import each_key_of
from sluicegate.config.topics import Topic
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.proxy.reload.topic_explanation import explain
from sluicegate.validation.cluster_settings import ClusterSettings
from sluicegate.validation.floor import FloorPolicy
from sluicegate.validation.from_keys import rulebook_of
from sluicegate.validation.policy import EXEMPT, Framing, RehearsedBounds, TimeFix, TimestampType, TopicPolicy
from sluicegate.validation.rulebook import Rulebook, SuspendedTopics
from sluicegate.validation.rules.rule import Client, Mode
from tests.config.reading import SMALLEST, load_text, problems_of_text
from tests.docs.test_policies import NOW, SentRequest, validate_sent, validated_batch
from tests.framing.cases import AMBIGUOUS
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


def rulebook_of_text(text: str) -> Rulebook:
    return rulebook_of(load_text(SMALLEST + text).config)


def outcome_of_record(rulebook: Rulebook, topic: str, **record: Any) -> str:
    given = {"time": NOW, "key": b"k", "value": b"v", "client": "", "acks": -1} | record
    records = (Rec(given["time"], given["key"], given["value"]),)
    found = validate_sent(
        rulebook, SentRequest(topic, records, acks=given["acks"], client=Client("a:1", given["client"]))
    )
    return "rejected" if found.rejected else "observed" if found.observed else "accepted"


GRADUAL = f"""topics:
  - match: t
    {AFTER}: 1m
    enforce: {{clients: ["team-a-*"]}}
    rules: [{{name: own, value: {{required: true}}}}]
"""


@pytest.mark.parametrize(
    ("record", "of_team_a", "of_others"),
    [
        ({}, "accepted", "accepted"),
        ({"key": None}, "rejected", "rejected"),
        ({"time": NOW + 2 * HOUR}, "rejected", "rejected"),
        ({"value": Random(1).randbytes(2_000_000)}, "rejected", "rejected"),
        ({"time": NOW + 5 * 60_000}, "rejected", "observed"),
        ({"value": None}, "rejected", "observed"),
        ({"value": None, "key": None}, "rejected", "rejected"),
        ({"value": None, "time": NOW + 2 * HOUR}, "rejected", "rejected"),
    ],
)
def test_floor_applies_to_all_clients_and_enforce_only_to_stricter_keys(
    record: dict[str, Any], of_team_a: str, of_others: str
) -> None:
    rulebook = rulebook_of_text(FLOOR + GRADUAL)

    assert outcome_of_record(rulebook, "t", client="team-a-1", **record) == of_team_a
    assert outcome_of_record(rulebook, "t", client="team-b-1", **record) == of_others


def test_topic_exempt_from_the_floor_is_enforced_only_for_named_clients() -> None:
    rulebook = rulebook_of_text(FLOOR + GRADUAL.replace("match: t", "match: audit"))

    assert outcome_of_record(rulebook, "audit", client="team-b-1", time=NOW + 2 * HOUR) == "observed"
    assert outcome_of_record(rulebook, "audit", client="team-a-1", time=NOW + 2 * HOUR) == "rejected"


def test_operator_request_rules_apply_to_clients_without_enforcement() -> None:
    rulebook = rulebook_of_text(FLOOR + GRADUAL + 'requests: [{name: no-acks, match: {topics: t}, acks: ["all"]}]\n')

    assert outcome_of_record(rulebook, "t", client="team-b-1", acks=1) == "rejected"
    assert outcome_of_record(rulebook, "t", client="team-b-1", acks=-1) == "accepted"


def test_suspension_overrides_the_floor_for_clients_without_enforcement() -> None:
    rulebook = rulebook_of_text(FLOOR + GRADUAL).with_suspended(SuspendedTopics(everywhere=True))

    assert outcome_of_record(rulebook, "t", client="team-b-1", key=None) == "observed"


def test_cluster_settings_apply_to_clients_without_enforcement() -> None:
    rulebook = rulebook_of_text(FLOOR + GRADUAL).with_settings(
        {"t": ClusterSettings(None, LONG_MAX, LONG_MAX, False, 500)}
    )

    assert outcome_of_record(rulebook, "t", client="team-b-1", value=Random(1).randbytes(1_000)) == "rejected"


def test_explain_shows_the_floor_for_clients_without_enforcement() -> None:
    lines = list(explain("t", load_text(SMALLEST + FLOOR + GRADUAL)))

    (line,) = [line for line in lines if "for all other clients" in line]
    assert f"{AFTER}: {HOUR}" in line and "rules: [keyed]" in line and "floor[1]" in line
    assert any("{clients: [team-a-*]}" in each for each in lines)


POLICIES = st.builds(
    TopicPolicy,
    st.sampled_from(TimestampType),
    BOUNDS,
    BOUNDS,
    st.booleans(),
    SIZES,
    st.booleans(),
    st.sampled_from([Mode.OBSERVE, Mode.REJECT, Mode.QUARANTINE]),
    st.sampled_from([None, RehearsedBounds((1,), ())]),
    st.sampled_from([None, TimeFix.NOW]),
    framing=st.sampled_from(FRAMINGS),
)
FLOORS = st.builds(
    FloorPolicy, BOUNDS, BOUNDS, st.booleans(), SIZES, st.sampled_from([Mode.OBSERVE, Mode.REJECT]),
    st.sampled_from(FRAMINGS[1:]),
)  # fmt: skip


@given(POLICIES, FLOORS)
def test_policy_with_floor_is_at_least_as_strict_as_floor_and_topic(policy: TopicPolicy, floor: FloorPolicy) -> None:
    found = floor.with_floor(policy)

    assert found.checked
    assert STRICTNESS.index(found.mode) >= STRICTNESS.index(floor.mode)
    assert found.before_max_ms <= floor.before_max_ms and found.after_max_ms <= floor.after_max_ms
    if min(floor.before_max_ms, floor.after_max_ms) < LONG_MAX:
        assert found.timestamp_type is TimestampType.CREATE_TIME
    assert found.compacted or not floor.compacted
    assert floor.max_message_bytes is None or (found.max_message_bytes or LONG_MAX) <= floor.max_message_bytes
    assert FRAMINGS.index(found.framing) >= FRAMINGS.index(floor.framing)
    if policy.checked:
        assert STRICTNESS.index(found.mode) >= STRICTNESS.index(policy.mode)
        assert found.before_max_ms <= policy.before_max_ms and found.after_max_ms <= policy.after_max_ms
        assert (found.max_message_bytes or LONG_MAX) <= (policy.max_message_bytes or LONG_MAX)
        assert FRAMINGS.index(found.framing) >= FRAMINGS.index(policy.framing)
        assert (found.fix, found.rehearsed, found.dead_letters) == (policy.fix, policy.rehearsed, policy.dead_letters)
    assert floor.with_floor(found) == found


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

OTHER_ENTRIES = [
    "{match: t, message.timestamp.before.max.ms: 30d}",
    "{match: t, message.timestamp.difference.max.ms: 30d}",
    "{match: t, cleanup.policy: delete}",
    "{match: t, max.message.bytes: 100MB}",
    f"{{match: t, rehearse: {{{AFTER}: [30d]}}}}",
    "{match: t, enforce: {percent: 0}}",
    "{match: t, sensitive: [{name: mail, action: mask, fields: [mail]}]}",
    "{match: t, owner: {team: a}}",
]
_FIX = "{match: t, fix: {timestamp: now}}"
"""Repairs times so that the floor accepts them (test_time_fix_corrects_records_that_the_floor_would_reject)."""


def test_every_topic_key_is_covered_by_the_floor_tests() -> None:
    """A new key needs an entry above, in which a team tries to weaken the floor with it."""
    keys = {key.name for key in each_key_of(Topic)} - {"match"}
    entries = [*WEAK_ENTRIES, *OTHER_ENTRIES, _FIX]

    assert {key for key in keys if not any(f" {key}:" in entry for entry in entries)} == set()


@pytest.mark.parametrize("entry", [*WEAK_ENTRIES, *OTHER_ENTRIES])
def test_no_topic_entry_allows_ambiguous_batches_past_the_floor(entry: str) -> None:
    for case in ("an empty raw block, lz4", "a record within a record, zstd"):
        data = AMBIGUOUS[case](NOW)
        assert validated_batch(rulebook_of_text(f"{FLOOR}topics: [{entry}]"), "t", data).rejected, case


def test_operator_defaults_can_change_the_framing_of_the_floor() -> None:
    rulebook = rulebook_of_text(f"{FLOOR}defaults: {{framing: broker}}")

    assert not validated_batch(rulebook, "t", AMBIGUOUS["an empty raw block at the end, lz4"](NOW)).rejected


@pytest.mark.parametrize("entry", [*WEAK_ENTRIES, *OTHER_ENTRIES])
def test_no_topic_entry_disables_the_floor(entry: str) -> None:
    rulebook = rulebook_of_text(f"{FLOOR}topics: [{entry}]")

    assert outcome_of_record(rulebook, "t", key=None) == "rejected"
    assert outcome_of_record(rulebook, "t", time=NOW + 2 * 3_600_000) == "rejected"
    assert outcome_of_record(rulebook, "t", value=Random(1).randbytes(2_000_000)) == "rejected"
    assert outcome_of_record(rulebook, "t", value=b"{}") == "accepted"


def test_time_fix_corrects_records_that_the_floor_would_reject() -> None:
    found = validate_sent(
        rulebook_of_text(f"{FLOOR}topics: [{{match: t, fix: {{timestamp: now}}}}]"),
        SentRequest("t", (Rec(NOW + 2 * 3_600_000, b"k", b"v"),)),
    )

    assert not found.rejected and set(found.fixed) == {(0, 0)}


def test_floor_rules_precede_topic_rules() -> None:
    rules = (
        rulebook_of_text(f"{FLOOR}topics: [{{match: t, rules: [{{name: own, value: {{required: true}}}}]}}]")
        .policy_of("t")
        .rules
    )

    assert rules is not None and [rule.name for rule in rules.rules] == ["keyed", "own"]


def test_floor_entry_with_only_a_match_exempts_the_topic() -> None:
    rulebook = rulebook_of_text(f"{FLOOR}topics: [{{match: audit, checks: none}}]")

    assert outcome_of_record(rulebook, "audit", key=None) == "accepted"
    assert rulebook.policy_of("audit-2") == TopicPolicy()


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
def test_floor_mode_defaults_to_the_default_mode(floor: str | None, defaults: str, team: str, mode: str) -> None:
    own = "" if floor is None else f", mode: {floor}"
    rulebook = rulebook_of_text(
        f"defaults: {{mode: {defaults}}}\nfloor: [{{match: '*', cleanup.policy: compact{own}}}]\n"
        f"topics: [{{match: t, {team}}}]"
    )

    assert outcome_of_record(rulebook, "t", key=None) == mode


def test_the_clusters_settings_are_applied_after_the_floor() -> None:
    rulebook = rulebook_of_text(FLOOR).with_settings(
        {"t": ClusterSettings(TimestampType.LOG_APPEND_TIME, after_max_ms=5)}
    )

    assert rulebook.policy_of("t").timestamp_type is TimestampType.LOG_APPEND_TIME
    assert rulebook.policy_of("t").after_max_ms == 5


def test_operator_exemption_overrides_the_floor() -> None:
    assert rulebook_of_text(f"{FLOOR}exempt: [{{client_id: mirror}}]").exempts(Client("a:1", "mirror"))


def test_floor_with_client_rules_makes_the_policy_client_dependent() -> None:
    assert rulebook_of_text(FLOOR).in_file.depends_on_client
    assert not rulebook_of_text("floor: [{match: '*', cleanup.policy: compact}]").in_file.depends_on_client


def test_topics_that_match_one_entry_share_a_policy_object() -> None:
    rulebook = rulebook_of_text(FLOOR)

    assert rulebook.policy_of("a") is rulebook.policy_of("b")


def test_rejects_topic_rule_with_the_name_of_a_floor_rule() -> None:
    rule = "rules: [{name: keyed, value: {required: true}}]"

    assert problems_of_text(f"{SMALLEST}{FLOOR}defaults: {{{rule}}}\ntopics:\n  - {{match: t, {rule}}}\n") == [
        "c.yaml:9: defaults.rules[0].name: a rule of floor[1] is named keyed too; names must be unique",
        "c.yaml:11: topics[0].rules[0].name: a rule of floor[1] is named keyed too; names must be unique",
    ]


def test_warns_of_each_topic_key_weaker_than_the_floor() -> None:
    entries = "".join(f"  - {entry}\n" for entry in (*WEAK_ENTRIES, "{match: audit, checks: none}"))
    found = load_text(f"{SMALLEST}{FLOOR}topics:\n{entries}violations: {{file: v.jsonl}}\n").warnings

    assert [words.partition(" which applies")[0] for words in found if "weaker" in words] == [
        f"c.yaml:{line}: topics[{line - 10}].{key} is weaker than floor[1] (c.yaml:5),"
        for line, key in [
            (10, "checks none"),
            (11, "mode observe"),
            (12, "mode mark"),
            (13, f"{AFTER} {30 * 86_400_000}"),
            (14, "message.timestamp.type LogAppendTime"),
            (18, "framing broker"),
        ]
    ]


def test_topic_exemption_does_not_override_the_floor() -> None:
    """The same as `checks: none` for these clients; the cluster's settings and a suspension apply to what is left."""
    rulebook = rulebook_of_text(
        f"{FLOOR}exempt: [{{client_id: mirror, topics: [orders, audit]}}]\ndefaults: {{framing: strict}}\n"
    )
    mirror, other = Client("a:1", "mirror"), Client("a:1", "app")
    settings = ClusterSettings(TimestampType.LOG_APPEND_TIME)

    assert rulebook.policy_of("audit").for_client(mirror) is EXEMPT
    floor = rulebook.policy_of("orders").for_client(mirror)
    assert (floor.checked, floor.after_max_ms, floor.framing, floor.mode) == (True, HOUR, Framing.STRICT, Mode.REJECT)
    assert rulebook.policy_of("orders").for_client(other).framing is Framing.STRICT
    assert rulebook.policy_of("payments").for_client(mirror).framing is Framing.STRICT
    on_cluster = rulebook.with_settings({"orders": settings}).policy_of("orders").for_client(mirror)
    assert on_cluster.timestamp_type is TimestampType.LOG_APPEND_TIME
    suspended = rulebook.with_suspended(SuspendedTopics(everywhere=True))
    assert suspended.policy_of("orders").for_client(mirror).mode is Mode.OBSERVE
    assert suspended.policy_of("audit").for_client(mirror) is EXEMPT
