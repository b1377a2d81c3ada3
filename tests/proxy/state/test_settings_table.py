"""Topic settings in the shared state are stored by topic id, in the order of the state topic, in bounded memory."""

import time

import pytest

from sluicegate.proxy.state import agreed_state
from sluicegate.proxy.state.agreed_state import AgreedState, StateFull
from sluicegate.proxy.state.change import (
    Actor,
    DeleteTopicSetting,
    SettingOperation,
    SetTopicSetting,
    StateChange,
    decode,
    encode,
    key_of,
)
from sluicegate.proxy.state.setting_changes import NewSettings, operations_of
from sluicegate.proxy.state.settings_table import NO_SETTINGS, SettingsTable, TopicValues

MODE, OWNER = "sluicegate.mode", "sluicegate.owner"


def state_after(*operations: SettingOperation, state: AgreedState | None = None) -> AgreedState:
    its = state or AgreedState()
    for operation in operations:
        change = StateChange(f"id-{its.offset}", 1_795_780_800_000, Actor("User:a", "10.0.0.1"), "gate-1", operation)
        decoded = decode(encode(change))
        assert decoded == change
        its = its.after(decoded, its.offset)
    return its


def values_in(table: SettingsTable) -> dict[str, tuple[str, dict[str, str]]]:
    return {topic: (its.topic_id, dict(its.values)) for topic, its in table}


def test_set_operations_accumulate_and_delete_operations_remove_settings() -> None:
    state = state_after(
        SetTopicSetting("a", "id-a", MODE, "observe"),
        SetTopicSetting("a", "id-a", OWNER, "payments"),
        SetTopicSetting("b", "id-b", MODE, "reject"),
        DeleteTopicSetting("a", "id-a", MODE),
    )
    assert values_in(state.settings) == {"a": ("id-a", {OWNER: "payments"}), "b": ("id-b", {MODE: "reject"})}
    state = state_after(DeleteTopicSetting("a", "id-a", OWNER), state=state)
    assert values_in(state.settings) == {"b": ("id-b", {MODE: "reject"})}
    assert state.settings.size == len(MODE) + len("reject")


def test_recreated_topic_starts_without_settings() -> None:
    state = state_after(SetTopicSetting("a", "old", OWNER, "payments"), SetTopicSetting("a", "new", MODE, "observe"))
    assert values_in(state.settings) == {"a": ("new", {MODE: "observe"})}
    late = state_after(DeleteTopicSetting("a", "old", MODE), state=state)
    assert values_in(late.settings) == {"a": ("new", {MODE: "observe"})}


def test_each_setting_has_its_own_record_key() -> None:
    operations = [SetTopicSetting("a", "i", MODE, "x"), DeleteTopicSetting("a", "i", MODE)]
    assert {key_of(each) for each in operations} == {b"topic-setting/a/sluicegate.mode"}
    assert key_of(SetTopicSetting("a", "i", OWNER, "x")) != key_of(operations[0])


def test_setting_beyond_the_character_limit_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreed_state, "MAX_SETTINGS_CHARACTERS", 100)
    state = state_after(SetTopicSetting("a", "i", MODE, "x" * 60))
    with pytest.raises(StateFull):
        state_after(SetTopicSetting("b", "i", MODE, "x" * 60), state=state)
    state_after(DeleteTopicSetting("a", "i", MODE), state=state)


def test_operations_first_delete_settings_of_a_former_topic_with_the_same_name() -> None:
    table = NO_SETTINGS.with_topic("a", TopicValues("old", {OWNER: "payments"}))

    made = operations_of(NewSettings("a", "new", {MODE: "observe"}), table)

    assert made == [DeleteTopicSetting("a", "old", OWNER), SetTopicSetting("a", "new", MODE, "observe")]
    assert operations_of(NewSettings("a", "old", {}, frozenset({OWNER, MODE})), table) == [
        DeleteTopicSetting("a", "old", OWNER)
    ]


def test_changes_contain_only_the_topics_that_differ() -> None:
    before = NO_SETTINGS
    for i in range(500):
        before = before.with_topic(f"t-{i}", TopicValues(f"id-{i}", {MODE: "observe"}))
    after = before.with_topic("t-7", None).with_topic("t-8", TopicValues("id-8", {MODE: "reject"}))

    assert after.changes_since(before) == {"t-7": None, "t-8": TopicValues("id-8", {MODE: "reject"})}
    assert len(before.changes_since(NO_SETTINGS)) == 500


def test_reading_settings_of_ten_thousand_topics_takes_little_cpu_time() -> None:
    """A copy of all settings for each record would take minutes."""
    began = time.process_time()
    state = state_after(*(SetTopicSetting(f"topic-{i}", f"id-{i}", MODE, "observe") for i in range(10_000)))
    assert len(state.settings) == 10_000
    assert time.process_time() - began < 5
