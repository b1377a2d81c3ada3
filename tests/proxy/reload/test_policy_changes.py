"""The changes in a new configuration are listed as stricter or looser, by topic, with their lines."""

import pytest

from sluicegate.proxy.reload.policy_changes import changes_between, counts_of
from sluicegate.validation.effective import effective_policy
from sluicegate.validation.policy import TopicPolicy
from tests.config.reading import SMALLEST, load_text

AFTER = "message.timestamp.after.max.ms"
BEFORE = "message.timestamp.before.max.ms"
KEYED = "rules: [{name: keyed, key: {required: true}}]"


def change_lines(before: str, after: str) -> list[str]:
    found = changes_between(load_text(SMALLEST + before), load_text(SMALLEST + after))
    return [f"{change.topics}: {change.effect}: {change.what}" for change in found]


def topic_with_keys(keys: str) -> str:
    return f"topics: [{{match: 'o*'{f', {keys}' if keys else ''}}}]"


DIRECTED = [
    (f"{AFTER}: 2h", f"{AFTER}: 1h", f"{AFTER} 7200000 -> 3600000"),
    ("", f"{AFTER}: 1h", f"{AFTER} none -> 3600000"),
    ("", f"{BEFORE}: 1h", f"{BEFORE} none -> 3600000"),
    ("", "max.message.bytes: 5", "max.message.bytes none -> 5"),
    ("", "cleanup.policy: compact", "cleanup.policy delete -> compact"),
    ("mode: observe", "", "mode observe -> reject"),
    ("mode: observe", "mode: mark", "mode observe -> mark"),
    ("mode: observe", "quarantine: dead", "mode observe -> quarantine"),
    ("mode: mark", "quarantine: dead", "mode mark -> quarantine"),
    ("checks: none", f"{AFTER}: 1h", "checks none -> all"),
    ("framing: broker", "framing: strict", "framing broker -> strict"),
    ("fix: {timestamp: now}", "", "fix now -> none"),
    ("enforce: {percent: 5}", "", "enforce 5 % of clients -> none"),
    ("message.timestamp.type: LogAppendTime", "", "message.timestamp.type LogAppendTime -> CreateTime"),
    ("", KEYED, "rule keyed added"),
    (KEYED.replace("name:", "mode: observe, name:"), KEYED, "rule keyed mode observe -> reject"),
]
"""A looser setting, a stricter setting, and the text for a change between the two."""

NEITHER = {"rehearse", "samples", "quarantine", "sensitive", "owner"}
"""Keys whose changes do not affect whether batches are accepted."""


@pytest.mark.parametrize(("looser", "stricter", "words"), DIRECTED)
def test_a_policy_change_is_stricter_and_its_reversal_looser(looser: str, stricter: str, words: str) -> None:
    there, back = (
        change_lines(topic_with_keys(looser), topic_with_keys(stricter)),
        change_lines(topic_with_keys(stricter), topic_with_keys(looser)),
    )

    assert f"o*: stricter: {words}" in there
    assert not any(": looser: " in line for line in there)
    assert [line.partition(": ")[2].partition(":")[0] for line in back if "changed" not in line] == ["looser"] * len(
        [line for line in there if "changed" not in line]
    )


def test_every_policy_key_has_a_direction_or_is_listed_without_one() -> None:
    directed = {words.split()[0].replace("rule", "rules") for _, _, words in DIRECTED}

    assert directed | NEITHER == {value.key for value in effective_policy(TopicPolicy())}, (
        "a key without a direction is only `changed` in `sluicegate diff`: give it one in policy_changes.py and a case "
        "here, or add it to NEITHER"
    )


def test_changes_without_a_direction_are_reported_as_changed() -> None:
    assert change_lines(topic_with_keys(KEYED), topic_with_keys(KEYED.replace("key:", "value:"))) == [
        "o*: changed: rule keyed changed"
    ]
    assert change_lines(topic_with_keys(""), topic_with_keys("quarantine: dead")) == [
        "o*: changed: mode reject -> quarantine",
        "o*: changed: quarantine none -> dead",
    ]
    assert change_lines(topic_with_keys(""), topic_with_keys("samples: true, owner: {team: a}")) == [
        "o*: changed: samples false -> true",
        "o*: changed: owner none -> a",
    ]


def test_changes_of_defaults_and_floor_are_reported_for_each_topic() -> None:
    assert change_lines(topic_with_keys(""), f"defaults: {{{AFTER}: 1h}}\n{topic_with_keys(f'{AFTER}: 1m')}") == [
        f"o*: stricter: {AFTER} none -> 60000",
        f"topics without an entry: stricter: {AFTER} none -> 3600000",
    ]
    assert change_lines(
        topic_with_keys("checks: none"), f"floor: [{{match: o*, {AFTER}: 1h}}]\n{topic_with_keys('checks: none')}"
    ) == ["o*: stricter: checks none -> all"]


def test_change_of_shadowed_entry_is_not_reported() -> None:
    before = f"topics: [{{match: 'o*'}}, {{match: orders, {AFTER}: 1h}}]"
    assert change_lines(before, before.replace("1h", "2h")) == []


def test_added_and_removed_entries_are_reported_as_stricter_or_looser() -> None:
    one = "topics: [{match: 'a[xy]?', cleanup.policy: compact}, {match: '/b+/', mode: observe}]"

    assert change_lines("", one) == [
        "a[xy]?: stricter: cleanup.policy delete -> compact",
        "/b+/: looser: mode reject -> observe",
    ]
    assert change_lines(one, "") == [
        "a[xy]?: looser: cleanup.policy compact -> delete",
        "/b+/: stricter: mode observe -> reject",
    ]


def test_policies_of_regular_expression_are_compared_under_its_floor() -> None:
    """A floor applies if it provably covers all topics of the expression. Looser keys below the floor change
    nothing."""
    floor = "floor: [{match: audit}, {match: b*, message.timestamp.after.max.ms: 5}, {match: '*', mode: reject}]\n"

    def configuration_under_floor(keys: str) -> str:
        return f"{floor}topics: [{{match: '/b[0-9]+/'{keys}}}, {{match: '/[xy]/'{keys}}}]"

    found = change_lines(
        configuration_under_floor(", message.timestamp.after.max.ms: 3"),
        configuration_under_floor(", message.timestamp.after.max.ms: 9"),
    )
    assert found == [
        "/b[0-9]+/: looser: message.timestamp.after.max.ms 3 -> 5",
        "/[xy]/: looser: message.timestamp.after.max.ms 3 -> 9",
    ]
    assert change_lines(configuration_under_floor(", mode: observe"), configuration_under_floor(", mode: reject")) == []


def test_changed_request_rules_exemptions_and_quotas_are_reported() -> None:
    text = "requests: [{name: r, acks: [all]}]\nexempt: [{client_id: m}, {client_id: m, topics: [a, b]}]\n"
    text += "quotas: [{name: q, client_id: x, connections: 1}]"

    assert [line for line in change_lines("", text) if line.startswith("all topics")] == [
        "all topics: stricter: request rule r added",
        "all topics: looser: exemption client_id m added",
        "all topics: stricter: quota q added",
    ]


def test_change_names_its_line_and_equal_files_have_no_changes() -> None:
    before, after = (
        load_text(SMALLEST + topic_with_keys("")),
        load_text(f"{SMALLEST}topics:\n  - match: o*\n    mode: observe\n"),
    )
    found = list(changes_between(before, after))

    assert list(map(str, found)) == ["o*: looser: mode reject -> observe (c.yaml:5, topics[0].mode)"]
    assert counts_of(found) == "0 stricter, 1 looser, 0 changed"
    assert not list(changes_between(after, after))
