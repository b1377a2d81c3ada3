"""Topic settings act like an entry in `topics`: values, precedence, delegation, and the keys that topic owners cannot
set.

The messages are those of `sluicegate check` for the same values in a file.
"""

from dataclasses import fields
from typing import Any

import pytest

from sluicegate.config.keys import each_key_of
from sluicegate.config.loading import config_of
from sluicegate.config.model import Config
from sluicegate.config.setting_keys import CONTRACT, PREFIX, SETTING_KEYS
from sluicegate.config.topics import Topic
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.validation.topic_entry import NotDelegated, SettingUnusable, TopicEntry, entry_of

HOUR_MS = 3_600_000
ALL = {"topics": ["orders-*"], "keys": "*"}


def config(*topic_policies: dict[str, Any], **more: Any) -> Config:
    smallest = {"upstream": {"bootstrap": ["a:1"]}, "listen": {"bootstrap": "127.0.0.1:1"}, "state": {"topic": "state"}}
    return config_of({**smallest, "topic_policies": list(topic_policies or [ALL]), **more})


def entry(topic: str = "orders-eu", base: Topic | None = None, its: Config | None = None, **values: str) -> TopicEntry:
    given = {PREFIX + name.replace("__", "."): value for name, value in values.items()}
    return entry_of(its or config(), topic, given, base)


def explicit_keys(made: TopicEntry) -> dict[str, Any]:
    held = {each.name: getattr(made.keys, each.name) for each in fields(made.keys)}
    return {name: value for name, value in held.items() if value is not None and name != "match"}


def test_every_topic_entry_key_except_match_is_a_topic_setting() -> None:
    own = {key.path[0] for key in SETTING_KEYS.values() if key.name != CONTRACT}
    assert own == {key.name for key in each_key_of(Topic)} - {"match"}


@pytest.mark.parametrize(
    ("name", "value", "attribute", "expected"),
    [
        ("mode", "observe", "mode", "observe"),
        ("checks", "none", "checks", "none"),
        ("samples", "true", "samples", True),
        ("message__timestamp__after__max__ms", "1h", "after_max_ms", HOUR_MS),
        ("message__timestamp__after__max__ms", "3600000", "after_max_ms", HOUR_MS),
        ("message__timestamp__before__max__ms", "none", "before_max_ms", LONG_MAX),
        ("max__message__bytes", "1MiB", "max_message_bytes", 1 << 20),
        ("quarantine", "orders-dead", "quarantine", "orders-dead"),
        ("framing", "strict", "framing", "strict"),
        ("cleanup__policy", "compact", "cleanup_policy", "compact"),
    ],
)
def test_topic_setting_values_are_parsed_as_in_a_configuration_file(
    name: str, value: str, attribute: str, expected: object
) -> None:
    made = entry(**{name: value})
    assert getattr(made.keys, attribute) == expected
    assert made.keys.match == "orders-eu"


def test_topic_setting_names_flatten_section_keys() -> None:
    made = entry(
        owner="payments",
        owner__contact="#payments",
        enforce__percent="10",
        fix="unit",
        rehearse__message__timestamp__after__max__ms="1m,1h",
    )
    owner, enforce, fix, rehearse = made.keys.owner, made.keys.enforce, made.keys.fix, made.keys.rehearse
    assert owner is not None and enforce is not None and fix is not None and rehearse is not None
    assert str(owner) == "payments (#payments)"
    assert (enforce.percent, fix.timestamp, rehearse.after_max_ms) == (10, "unit", (60_000, HOUR_MS))
    assert (
        entry(enforce__clients="billing-*,web-*").keys.enforce
        == entry(enforce__clients="billing-*, web-*").keys.enforce
    )


def test_topic_setting_rules_are_parsed_from_json() -> None:
    (rule,) = entry(rules='[{"name": "has-a-value", "value": {"required": true}}]').keys.rules or ()
    assert rule.name == "has-a-value"


CONTRACT_TEXT = """
apiVersion: v3.0.2
kind: DataContract
id: orders
name: orders
version: 1.0.0
status: active
team: [{username: ada}]
servers: [{server: main, type: kafka, host: "a:1", format: json}]
schema:
  - name: orders
    physicalName: orders-eu
    physicalType: topic
    properties: [{name: id, logicalType: integer, required: true}]
"""


def test_contract_in_a_topic_setting_adds_its_rules() -> None:
    first = {"name": "first", "value": {"required": True}}
    made = entry(its=config(defaults={"rules": [first]}), contract=CONTRACT_TEXT)
    names = [rule.name for rule in made.keys.rules or ()]
    assert names[0] == "first"
    assert len(names) > 1
    assert made.settings["rules"] == CONTRACT


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: DataContract", "is a required property"),
        ("[", "not YAML"),
        (CONTRACT_TEXT.replace("orders-eu", "orders-us"), "no rule for orders-eu; it names orders-us"),
        (CONTRACT_TEXT.replace("v3.0.2", "v2.2.2"), "version 3 of the Open Data Contract Standard is read"),
    ],
)
def test_rejects_contract_setting_without_a_rule_for_the_topic(text: str, words: str) -> None:
    with pytest.raises(SettingUnusable) as raised:
        entry(contract=text)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("values", "key", "text"),
    [
        ({"mode": "observ"}, "mode", "did you mean observe?"),
        ({"enforce__percent": "101"}, "enforce.percent", "expected a percentage of 0 to 100; found 101"),
        ({"enforce__percent": "1", "enforce__clients": "a"}, "enforce.percent", "one of the two"),
        ({"owner__contact": "#payments"}, "owner.contact", "sluicegate.owner: this key is required"),
        ({"samples": "maybe"}, "samples", "expected true or false; found 'maybe'"),
        ({"rules": "["}, "rules", "expected a JSON text"),
        ({"rules": "[" * 10_000}, "rules", "expected a JSON text"),
        ({"rules": '[{"name": "x", "value": {"requird": true}}]'}, "rules", "did you mean required?"),
        ({"rules": '[{"name": "x", "value": {"schema": {"registry": "r"}}}]'}, "rules", "registries has none"),
        ({"mode": "x" * 12_001}, "mode", "12001 characters, and at most 12000 are allowed"),
        ({"mode": "mark", "quarantine": "orders-dead"}, "mode", "cannot be combined"),
        ({"quarantine": "state"}, "quarantine", "state"),
        ({"nope": "1"}, "nope", "no such key; known keys: sluicegate.message.timestamp.type"),
    ],
)
def test_invalid_topic_setting_is_reported_with_its_key(values: dict[str, str], key: str, text: str) -> None:
    with pytest.raises(SettingUnusable) as raised:
        entry(**values)
    assert raised.value.key in {PREFIX + name.replace("__", ".") for name in values}
    assert raised.value.key == PREFIX + key or len(values) > 1
    assert text in str(raised.value)


@pytest.mark.parametrize(
    "rules",
    [
        '[{"name": "x", "value": {"schema": {"file": "/etc/passwd", "format": "json"}}}]',
        '[{"name": "x", "key": {"schema": {"file": "schemas/a.avsc", "format": "avro"}}}]',
    ],
)
def test_rejects_topic_setting_that_names_a_file(rules: str) -> None:
    with pytest.raises(SettingUnusable, match="a topic setting cannot name a file"):
        entry(rules=rules)


def test_rejects_topic_setting_with_a_hash_key_file() -> None:
    with pytest.raises(SettingUnusable, match="a topic setting cannot name a file"):
        entry(sensitive='[{"name": "x", "action": "hash", "fields": ["a"], "key_file": "/run/key"}]')


def test_rejects_dead_letter_topic_outside_the_delegation() -> None:
    with pytest.raises(SettingUnusable, match="beyond the topics of this delegation"):
        entry(quarantine="payments-dead")


@pytest.mark.parametrize(
    ("delegation", "topic", "name", "delegates"),
    [
        ({"topics": "orders-*", "keys": "mode"}, "orders-eu", "mode", True),
        ({"topics": "orders-*", "keys": "sluicegate.mode"}, "orders-eu", "mode", True),
        ({"topics": "orders-*", "keys": ["enforce.*"]}, "orders-eu", "enforce__percent", True),
        ({"topics": "orders-*", "keys": ["owner"]}, "orders-eu", "owner__contact", False),
        ({"topics": "/orders-.*/", "keys": "*"}, "orders-eu", "mode", True),
        ({"topics": "orders-*", "keys": "mode"}, "payments", "mode", False),
        ({"topics": "orders-*", "keys": "framing"}, "orders-eu", "mode", False),
    ],
)
def test_accepts_only_delegated_topic_settings(
    delegation: dict[str, Any], topic: str, name: str, delegates: bool
) -> None:
    values = {"mode": "observe", "enforce__percent": "10", "owner__contact": "x"}
    owner = {"owner": "payments"} if name == "owner__contact" else {}
    if delegates:
        entry(topic, its=config(delegation), **owner, **{name: values[name]})
        return
    with pytest.raises(NotDelegated) as raised:
        entry(topic, its=config(delegation), **owner, **{name: values[name]})
    assert "topic_policies" in str(raised.value)


def test_configuration_file_precedes_topic_settings_unless_delegated_otherwise() -> None:
    under = config(topics=[{"match": "orders-*", "mode": "reject", "owner": {"team": "platform"}}])
    over = config({**ALL, "over_files": True}, topics=[{"match": "orders-*", "mode": "reject"}])

    kept = entry(base=under.topics[0], its=under, mode="observe", samples="true")
    assert (kept.keys.mode, kept.keys.samples) == ("reject", True)
    assert dict(kept.settings) == {"samples": "sluicegate.samples"}
    assert str(kept.keys.owner) == "platform"
    assert entry(base=over.topics[0], its=over, mode="observe").keys.mode == "observe"


@pytest.mark.parametrize("keys", ["mod", "enforce", "nope.*", ""])
def test_rejects_delegation_of_an_unknown_key(keys: str) -> None:
    with pytest.raises(ValueError, match=r"no key of a topic setting|the text is empty"):
        config({"topics": "orders-*", "keys": keys})


def test_rejects_delegations_without_a_state_topic() -> None:
    with pytest.raises(ValueError, match="topic_policies"):
        config(state=None)
