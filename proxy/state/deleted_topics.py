"""Finds topics that were deleted without the proxies' knowledge. Their settings end with them."""

import time
from typing import Any
from uuid import uuid4

from sluicegate.proxy.state.change import Actor, StateChange
from sluicegate.proxy.state.setting_changes import deletions_of
from sluicegate.proxy.state.settings_table import SettingsTable
from sluicegate.proxy.state.topic_description import TopicUnavailable
from sluicegate.proxy.state.topic_ids import ids_of

_EVERY_SECONDS = 10.0
_MOST_CHANGES = 1000


class DeletedTopics:
    """Compares the ids of topics that have settings with those in the cluster, every ten seconds."""

    def __init__(self, proxy: str) -> None:
        self._proxy = proxy
        self._looked_at = float("-inf")

    def changes(self, client: Any, table: SettingsTable, now_ms: int) -> list[StateChange]:
        """Return the changes that delete the settings of topics that no longer exist or were recreated. Blocks.

        Returns none if it checked recently, or if no broker responds.
        """
        if not len(table) or time.monotonic() - self._looked_at < _EVERY_SECONDS:
            return []
        self._looked_at = time.monotonic()
        try:
            ids = ids_of(client, [topic for topic, _ in table])
        except TopicUnavailable:
            return []
        gone = [(topic, its) for topic, its in table if topic in ids and ids[topic] != its.topic_id]
        made = [
            StateChange(uuid4().hex, now_ms, Actor("sluicegate", f"topic {topic} was deleted"), self._proxy, operation)
            for topic, its in gone
            for operation in deletions_of(topic, its)
        ]
        return made[:_MOST_CHANGES]
