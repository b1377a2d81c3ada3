"""The effective policy shows the value of each key, and its source."""

import pytest

from sluicegate.validation.cluster_settings import ClusterSettings
from sluicegate.validation.effective import EffectiveValue, effective_policy, violated_value
from sluicegate.validation.from_keys import file_policies_of
from sluicegate.validation.origins import OriginKind
from sluicegate.validation.policy import TimestampType, TopicPolicy
from sluicegate.validation.rulebook import Rulebook, SuspendedTopics
from sluicegate.validation.verdict import Reason
from tests.config.reading import SMALLEST, load_text

BEFORE, AFTER, SIZE = "message.timestamp.before.max.ms", "message.timestamp.after.max.ms", "max.message.bytes"
TYPE, CLEANUP = "message.timestamp.type", "cleanup.policy"
MINUTE, HOUR = 60_000, 3_600_000
NO_BOUND = 2**63 - 1


def policy_of(
    text: str, settings: ClusterSettings | None = None, topic: str = "orders", suspended: SuspendedTopics | None = None
) -> TopicPolicy:
    read = load_text(SMALLEST + text)
    rulebook = Rulebook(file_policies_of(read.config, source=read.source)).with_settings({topic: settings})
    return (rulebook if suspended is None else rulebook.with_suspended(suspended)).policy_of(topic)


def effective_values(policy: TopicPolicy) -> dict[str, EffectiveValue]:
    return {value.key: value for value in reversed(effective_policy(policy))}


def test_stricter_cluster_bound_is_effective_and_both_sources_are_shown() -> None:
    """The cluster allows ten minutes, the file two hours. So a record 20 minutes ahead is rejected."""
    text = f"defaults:\n  {AFTER}: 2h\n"
    settings = ClusterSettings(after_max_ms=10 * MINUTE, set_on_topic=frozenset({AFTER}))

    policy = policy_of(text, settings)
    value = violated_value(policy, Reason.TIMESTAMP_IN_FUTURE)

    assert policy.after_max_ms == 10 * MINUTE
    assert value is not None
    assert value.source == f"cluster topic setting, instead of 7200000 in c.yaml:4, defaults.{AFTER}"
    assert value.as_json() == {
        "key": AFTER,
        "value": 10 * MINUTE,
        "source": "cluster topic setting",
        "place": "c.yaml:4",
        "path": f"defaults.{AFTER}",
        "configured": 2 * HOUR,
    }


@pytest.mark.parametrize(
    ("text", "settings", "key", "value", "source"),
    [
        (f"topics: [{{match: orders, {AFTER}: 1m}}]", ClusterSettings(), AFTER, MINUTE, f"c.yaml:3, topics[0].{AFTER}"),
        (f"defaults: {{{AFTER}: 1h}}", ClusterSettings(after_max_ms=HOUR), AFTER, HOUR, f"c.yaml:3, defaults.{AFTER}"),
        ("", ClusterSettings(after_max_ms=HOUR), AFTER, HOUR, "cluster default"),
        ("", ClusterSettings(), BEFORE, NO_BOUND, "cluster default"),
        ("", None, BEFORE, NO_BOUND, "sluicegate default"),
        (
            f"defaults: {{{TYPE}: LogAppendTime}}",
            ClusterSettings(TimestampType.CREATE_TIME, set_on_topic=frozenset({TYPE})),
            TYPE,
            "CreateTime",
            f"cluster topic setting, instead of LogAppendTime in c.yaml:3, defaults.{TYPE}",
        ),
        ("", ClusterSettings(compacted=True), CLEANUP, "compact", "cluster default"),
        (
            f"defaults: {{{CLEANUP}: delete}}",
            ClusterSettings(compacted=True, set_on_topic=frozenset({CLEANUP})),
            CLEANUP,
            "compact",
            f"cluster topic setting, instead of delete in c.yaml:3, defaults.{CLEANUP}",
        ),
        (f"defaults: {{{CLEANUP}: compact}}", ClusterSettings(), CLEANUP, "compact", f"c.yaml:3, defaults.{CLEANUP}"),
        (
            f"defaults: {{{SIZE}: 9}}",
            ClusterSettings(max_message_bytes=8),
            SIZE,
            8,
            "cluster default, instead of 9 in ",
        ),
        ("", None, SIZE, None, "sluicegate default"),
        (
            "defaults: {message.timestamp.difference.max.ms: 1h}",
            None,
            AFTER,
            HOUR,
            "c.yaml:3, defaults.message.timestamp.difference.max.ms",
        ),
        ("defaults: {fix: {timestamp: unit}}", None, AFTER, 315_360_000_000, "c.yaml:3, defaults.fix"),
        ("topics: [{match: orders, quarantine: dead}]", None, "mode", "quarantine", "c.yaml:3, topics[0].quarantine"),
    ],
)
def test_each_effective_policy_value_names_its_source(
    text: str, settings: ClusterSettings | None, key: str, value: object, source: str
) -> None:
    found = effective_values(policy_of(text, settings))[key]

    assert found.value == value
    assert found.source.startswith(source)


def test_effective_bound_from_the_deprecated_difference_has_the_topic_as_source() -> None:
    settings = ClusterSettings(before_max_ms=5, set_on_topic=frozenset({"message.timestamp.difference.max.ms"}))

    assert effective_values(policy_of("", settings))[BEFORE].source == "cluster topic setting"


def test_effective_rules_have_the_source_lines_that_define_them() -> None:
    text = (
        "topics:\n  - match: orders\n    rules:\n"
        "      - {name: sized, key: {required: true, max_size: 9}}\n"
        "      - {name: headed, headers: {required: [h]}}\n"
        "requests:\n  - {name: other, match: {topics: x}, acks: [all]}\n  - {name: sized, acks: [all]}\n"
        "quotas: [{name: big, topic: o*, requests_per_second: 9}]\n"
    )
    policy = policy_of(text)

    assert [(value.value, value.source) for value in effective_policy(policy) if value.key == "rules"] == [
        ("sized", "c.yaml:6, topics[0].rules[0]"),
        ("headed", "c.yaml:7, topics[0].rules[1]"),
    ]
    of_records, of_requests = (
        violated_value(policy, each, "sized") for each in (Reason.RULE_VIOLATED, Reason.REQUEST_RULE_VIOLATED)
    )
    assert of_records is not None and of_records.source == "c.yaml:6, topics[0].rules[0]"
    assert of_requests is not None and of_requests.source == "c.yaml:10, requests[1]"
    assert effective_values(policy)["quotas"].source == "c.yaml:11, quotas[0]"


def test_effective_value_set_by_the_floor_has_the_source_line_of_the_floor() -> None:
    keyed, utf8 = "{name: keyed, key: {required: true}}", "{name: utf8, value: {utf8: true}}"
    text = (
        f"floor:\n  - match: o*\n    {AFTER}: 1h\n    {BEFORE}: 2h\n    rules: [{keyed}]\n"
        f"topics:\n  - match: orders\n    {BEFORE}: 1h\n    mode: observe\n    rules: [{utf8}]\n"
        "  - {match: open, checks: none}\n"
    )
    policy = policy_of(text)
    found = effective_values(policy)

    assert (found[AFTER].value, found[AFTER].source) == (HOUR, f"c.yaml:5, floor[0].{AFTER}")
    assert (found[BEFORE].value, found[BEFORE].source) == (HOUR, f"c.yaml:10, topics[0].{BEFORE}")
    assert (
        found["mode"].as_json() | {"value": None}
        == EffectiveValue("mode", None, OriginKind.CONFIGURATION, "c.yaml:4", "floor[0].mode").as_json()
    )
    assert [value.source for value in effective_policy(policy) if value.key == "rules"] == [
        "c.yaml:7, floor[0].rules[0]",
        "c.yaml:12, topics[0].rules[0]",
    ]
    assert effective_values(policy_of(text, topic="open"))["checks"].source == "c.yaml:4, floor[0]"


def test_effective_values_changed_by_a_suspension_name_it_as_source() -> None:
    policy = policy_of("topics: [{match: orders, quarantine: dead}]", suspended=SuspendedTopics(everywhere=True))

    found = effective_values(policy)
    assert (found["mode"].value, found["mode"].source) == ("observe", "suspension")
    assert (found["quarantine"].value, found["quarantine"].source) == (None, "suspension")
    assert found["checks"].source == "c.yaml:3, topics[0].quarantine"


def test_crc_mismatch_refers_to_no_effective_value() -> None:
    assert violated_value(policy_of(""), Reason.CRC_MISMATCH) is None
