"""Converts changes of topic settings to operations in the state topic."""

from collections.abc import Mapping
from dataclasses import dataclass

from sluicegate.proxy.state.change import DeleteTopicSetting, SettingOperation, SetTopicSetting
from sluicegate.proxy.state.settings_table import SettingsTable, TopicValues


@dataclass(frozen=True, slots=True)
class NewSettings:
    """New values for settings of the topic with this id, and the settings to delete."""

    topic: str
    topic_id: str
    values: Mapping[str, str]
    removed: frozenset[str] = frozenset()


def operations_of(change: NewSettings, table: SettingsTable) -> list[SettingOperation]:
    """Return the operations that make a change. The settings of an earlier topic with the same name are deleted."""
    known = table.of(change.topic)
    made: list[SettingOperation] = []
    if known is not None and known.topic_id != change.topic_id:
        made += deletions_of(change.topic, known)
        known = None
    before = {} if known is None else known.values
    made += [DeleteTopicSetting(change.topic, change.topic_id, key) for key in sorted(change.removed) if key in before]
    return made + [SetTopicSetting(change.topic, change.topic_id, key, value) for key, value in change.values.items()]


def deletions_of(topic: str, known: TopicValues) -> list[SettingOperation]:
    """Return the operations that delete all of a topic's settings."""
    return [DeleteTopicSetting(topic, known.topic_id, key) for key in known.values]
