"""The state that results from applying the state topic's changes one after another."""

from dataclasses import dataclass, replace

from sluicegate.proxy.state.change import (
    DeleteTopicSetting,
    ResumeEnforcement,
    SettingOperation,
    SetTopicSetting,
    StateChange,
    SuspendEnforcement,
)
from sluicegate.proxy.state.settings_table import NO_SETTINGS, SettingsTable, TopicValues
from sluicegate.proxy.state.suspension import Suspension, SuspensionScope

MAX_SUSPENSIONS = 10_000
"""The maximum number of suspensions that are kept.

Proxies write at most a few hundred, so a larger number comes from another writer.
"""


MAX_SETTINGS_CHARACTERS = 64 << 20
"""The maximum number of characters in all topic settings that are kept."""
_TOO_MANY_SUSPENSIONS = f"more than {MAX_SUSPENSIONS} suspensions"
_TOO_LARGE = f"topic settings of more than {MAX_SETTINGS_CHARACTERS >> 20} million characters"


class StateFull(Exception):
    """A change would exceed a limit of the kept state. The message names the limit."""


@dataclass(frozen=True, slots=True)
class AgreedState:
    """The state before the record at `offset`, which is the next one to apply."""

    offset: int = 0
    suspensions: tuple[Suspension, ...] = ()
    settings: SettingsTable = NO_SETTINGS

    def skipping(self, offset: int) -> "AgreedState":
        """Return the state after the record at `offset` if that record changes nothing."""
        return replace(self, offset=offset + 1)

    def after(self, change: StateChange, offset: int) -> "AgreedState":
        """Return the state after the change at `offset`. Raises StateFull."""
        operation = change.operation
        if isinstance(operation, SetTopicSetting | DeleteTopicSetting):
            settings = _with_setting(self.settings, operation)
            if settings.size > max(MAX_SETTINGS_CHARACTERS, self.settings.size):
                raise StateFull(_TOO_LARGE)
            return replace(self, offset=offset + 1, settings=settings)
        kept = [each for each in self.suspensions if each.until_ms > change.time_ms]
        match operation:
            case ResumeEnforcement(None):
                kept = []
            case ResumeEnforcement(topic) | SuspendEnforcement(topic):
                kept = [each for each in kept if each.topic != topic]
        if isinstance(operation, SuspendEnforcement):
            if len(kept) >= MAX_SUSPENSIONS:
                raise StateFull(_TOO_MANY_SUSPENSIONS)
            actor = str(change.actor)
            kept.append(
                Suspension(operation.topic, operation.reason, operation.until_ms, SuspensionScope.CLUSTER, actor)
            )
        return replace(self, offset=offset + 1, suspensions=tuple(kept))


def _with_setting(table: SettingsTable, operation: SettingOperation) -> SettingsTable:
    """Return the table after a change of one setting. Deletions of another topic's settings change nothing."""
    known = table.of(operation.topic)
    is_known = known is not None and known.topic_id == operation.topic_id
    values = dict(known.values) if known is not None and is_known else {}
    if isinstance(operation, SetTopicSetting):
        values[operation.key] = operation.value
    elif is_known:
        values.pop(operation.key, None)
    else:
        return table
    return table.with_topic(operation.topic, TopicValues(operation.topic_id, values))
