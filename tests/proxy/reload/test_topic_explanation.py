"""A topic's explanation shows each setting with its file, line and reason."""

from pathlib import Path

from sluicegate.config.loading import load_file
from sluicegate.proxy.reload.topic_explanation import PolicyQuery, explain
from tests.config.reading import SMALLEST, load_text

BEFORE, AFTER = "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"


def explanation_by_key(text: str, topic: str = "orders") -> dict[str, str]:
    """Return each key of the explanation with the rest of its line."""
    lines = [line.strip() for line in explain(topic, load_text(SMALLEST + text))]
    return {line.partition(" ")[0]: line.partition(" ")[2].strip() for line in lines}


def test_every_key_of_a_topic_is_explained() -> None:
    told = explanation_by_key(
        f"topics:\n  - match: orders\n    mode: observe\n    rehearse: {{{AFTER}: [1m, 1h]}}\n"
        "defaults:\n  fix: {timestamp: unit}\n"
    )

    assert told["mode"] == "observe  (c.yaml:5, topics[0].mode)"
    assert told["rehearse"] == f"{{{AFTER}: [60000, 3600000]}}  (c.yaml:6, topics[0].rehearse)"
    assert told["fix"] == "{timestamp: unit}  (c.yaml:8, defaults.fix)"
    assert told[BEFORE] == "315360000000  (c.yaml:8, defaults.fix)"
    assert told["the"] == "proxy fixes nothing while mode is observe"


def test_topic_owner_is_explained() -> None:
    text = "topics:\n  - match: orders\n    owner: {team: orders, contact: '#orders'}\n"

    assert explanation_by_key(text)["owner"] == "orders (#orders)  (c.yaml:5, topics[0].owner)"
    assert explanation_by_key("")["owner"] == "none  (sluicegate default)"
    owner = PolicyQuery(load_text(SMALLEST + text))("orders")["owner"]
    assert owner == {"team": "orders", "contact": "#orders"}


def test_a_value_of_the_floor_is_explained_with_its_line() -> None:
    told = explanation_by_key(
        f"floor:\n  - match: '*'\n    {AFTER}: 1h\n    rules: [{{name: keyed, key: {{required: true}}}}]\n"
        f"topics:\n  - match: orders\n    mode: observe\n    {AFTER}: 5m\n    {BEFORE}: 7d\n"
    )

    assert told[AFTER] == f"300000  (c.yaml:10, topics[0].{AFTER})"
    assert told[BEFORE] == f"604800000  (c.yaml:11, topics[0].{BEFORE})"
    assert told["mode"] == "reject  (c.yaml:4, floor[0].mode)"
    assert told["{name:"] == "keyed, key: {required: true}}  (c.yaml:6, floor[0].rules[0])"


def test_unset_keys_are_explained_with_sluicegate_defaults() -> None:
    told = explanation_by_key("")

    assert told["mode"] == "reject  (sluicegate default)"
    assert told["fix"] == "none  (sluicegate default)"
    assert told["cleanup.policy"] == "delete  (sluicegate default)"
    assert told["samples"] == "false  (sluicegate default)"


def test_later_matching_entries_are_listed(tmp_path: Path) -> None:
    main, team = tmp_path / "c.yaml", tmp_path / "team.yaml"
    main.write_text(SMALLEST + "topic_files: team.yaml\ntopics: [{match: ord*, mode: reject}]\n")
    team.write_text("topics:\n  - match: orders\n    mode: observe\n  - match: other\n")

    lines = list(explain("orders", load_file(main, {})))

    assert lines[0] == f"orders: topics[0] decides (match: ord*, {main}:4)"
    assert lines[1] == (f"  {team}:2, topics[0].match: orders also matches, but comes later: the first match decides")


def test_topic_file_entry_is_named_by_its_index_in_that_file(tmp_path: Path) -> None:
    main, team = tmp_path / "c.yaml", tmp_path / "team.yaml"
    main.write_text(SMALLEST + "topic_files: team.yaml\ntopics: [{match: own}]\n")
    team.write_text("topics:\n  - match: orders\n    mode: observe\n")

    lines = list(explain("orders", load_file(main, {})))

    assert lines[0] == f"orders: topics[0] decides (match: orders, {team}:2)"
    assert any(line.endswith(f"observe  ({team}:3, topics[0].mode)") for line in lines)


def test_record_and_request_rules_are_listed_with_their_lines() -> None:
    text = (
        "topics:\n  - match: orders\n    rules:\n      - {name: keyed, key: {required: true}}\n"
        "requests:\n  - {name: all, match: {topics: ord*}, acks: [all]}\n"
        "  - {name: other, match: {topics: x}, acks: [all]}\n"
        "exempt: [{client_id: mirror}, {client_id: far, topics: x}]\n"
        "quotas:\n  - {name: small, client_id: etl, connections: 2}\n"
        "  - {name: big, topic: o*, requests_per_second: 9}\n"
        "  - {name: far, topic: x, requests_per_second: 1}\n"
    )
    lines = [line.strip() for line in explain("orders", load_text(SMALLEST + text))]

    assert "{name: keyed, key: {required: true}}  (c.yaml:6, topics[0].rules[0])" in lines
    assert "requests: {name: all, match: {topics: ord*}, acks: [all]}  (c.yaml:8, requests[0])" in lines
    assert "exempt: {client_id: mirror}  (c.yaml:10, exempt[0])" in lines
    assert "quotas: {name: small, client_id: etl, connections: 2}  (c.yaml:12, quotas[0])" in lines
    assert "quotas: {name: big, topic: o*, requests_per_second: 9}  (c.yaml:13, quotas[1])" in lines
    assert not any("other" in line or "far" in line for line in lines)


def test_quarantine_is_explained_as_source_of_the_mode() -> None:
    text = "topics:\n  - match: orders\n    quarantine: dead\n"
    lines = [" ".join(line.split()) for line in explain("orders", load_text(SMALLEST + text))]

    assert "quarantine dead (c.yaml:5, topics[0].quarantine)" in lines
    assert "mode quarantine (c.yaml:5, topics[0].quarantine)" in lines


def test_a_quarantine_overrides_unchecked_defaults() -> None:
    text = "defaults: {checks: none}\ntopics:\n  - match: orders\n    quarantine: dead\n"
    lines = [" ".join(line.split()) for line in explain("orders", load_text(SMALLEST + text))]

    assert "checks all (c.yaml:6, topics[0].quarantine)" in lines
    assert not any("forwarded unvalidated" in line for line in lines)
