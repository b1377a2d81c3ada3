"""The topics that a cluster's proxies share: the agreed state, the history of changes, and the proxies' presence."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import structlog

from sluicegate.config.state import StateTopics
from sluicegate.config.upstream import Upstream
from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.write_health import WriteHealth
from sluicegate.proxy.session.topic_settings import Requester, SettingsChange, StoreFailure
from sluicegate.proxy.state.agreed_state import AgreedState
from sluicegate.proxy.state.change import Actor, StateChange
from sluicegate.proxy.state.deleted_topics import DeletedTopics
from sluicegate.proxy.state.history_entry import Taken, entry_of, entry_of_reload
from sluicegate.proxy.state.history_topic import HistoryTopic
from sluicegate.proxy.state.presence import Presence
from sluicegate.proxy.state.presence_topic import PresenceTopic
from sluicegate.proxy.state.setting_changes import NewSettings, deletions_of, operations_of
from sluicegate.proxy.state.state_topic import StateTopic, StateUnwritable
from sluicegate.proxy.state.topic_description import TopicUnavailable, admin_client
from sluicegate.proxy.state.topic_ids import ids_of, text_of_id
from sluicegate.proxy.state.topic_plan import plans_of
from sluicegate.proxy.status.status import Status

_MOST_FILES = 3
_LOOK_UP_SECONDS = 5.0
_AGAIN_SECONDS = 0.05
_NOT_LISTED = StoreFailure("the brokers do not list the topic yet")
_NOT_DESCRIBED = StoreFailure("the proxy's own login cannot describe the topic; it needs the ACL DESCRIBE", False)


class SharedState:
    """Reads the state topic after `start`, and writes a history entry for each change that it applies.

    `proxy` is this proxy's name. `on_state` receives each state in the reading thread. `on_read` is called in that
    thread after the first state was read from the topic. `health` records the results of writes to the other two
    topics. `announcement` returns this proxy's announcement.
    """

    def __init__(
        self,
        keys: StateTopics,
        upstream: Upstream,
        proxy: str,
        on_state: Callable[[AgreedState], None],
        status: Status,
        health: WriteHealth,
        announcement: Callable[[], Presence],
        on_read: Callable[[], None],
    ) -> None:
        self._proxy = proxy
        self.history = HistoryTopic(keys.history, upstream, health)
        deleted = DeletedTopics(proxy)
        self.topic = StateTopic(
            keys,
            upstream,
            on_state,
            self._add_change,
            status,
            lambda client, table: deleted.changes(client, table, _now_ms()),
            on_read,
        )
        _, _, plan = plans_of(keys)
        self.presence = PresenceTopic(plan, upstream, announcement, health)
        self.commit = self.topic.commit
        self._upstream = upstream
        self._admin: Any = None
        self._changing = threading.Lock()

    def start(self) -> None:
        """Start reading the state, and announcing this proxy."""
        self.topic.start()
        self.presence.start()

    def change_settings(
        self, changes: Sequence[SettingsChange], requester: Requester, seconds: float
    ) -> dict[str, StoreFailure]:
        """Store changes of topic settings, and wait until they are in force in this proxy.

        Return the failure of each topic whose change failed. Blocks, and handles one call at a time. A call waits at
        most about `seconds` for its turn, and as long again for the change.
        """
        if not self._changing.acquire(timeout=seconds):
            busy = StoreFailure(f"changes of other clients were not stored within {seconds:.0f} s")
            return dict.fromkeys((each.topic for each in changes), busy)
        try:
            return self._change_settings(changes, requester, seconds)
        except Exception as error:  # the client must get a response
            structlog.get_logger("sluicegate.state").error("internal error: topic settings not stored", exc_info=error)
            failure = StoreFailure(f"internal error: {type(error).__name__}", is_temporary=False)
            return dict.fromkeys((each.topic for each in changes), failure)
        finally:
            self._changing.release()

    def _change_settings(
        self, changes: Sequence[SettingsChange], requester: Requester, seconds: float
    ) -> dict[str, StoreFailure]:
        failed: dict[str, StoreFailure] = {}
        try:
            ids = self._ids_of(changes)
        except TopicUnavailable as error:
            failure = StoreFailure(f"the id of the topic cannot be looked up: {error}", not error.is_denied)
            return dict.fromkeys((each.topic for each in changes), failure)
        actor, table, made = Actor(requester.name, requester.address), self.topic.settings, []
        for each in changes:
            known = table.of(each.topic)
            topic_id = ids.get(each.topic)
            if each.is_deleted:
                operations = [] if known is None else deletions_of(each.topic, known)
            elif topic_id is None:
                failed[each.topic] = _NOT_LISTED if each.topic in ids else _NOT_DESCRIBED
                continue
            else:
                operations = operations_of(NewSettings(each.topic, topic_id, each.values, each.removed), table)
            made += [StateChange(uuid4().hex, _now_ms(), actor, self._proxy, operation) for operation in operations]
        try:
            self.commit(made, seconds)
        except StateUnwritable as error:
            failed |= dict.fromkeys((each.topic for each in changes), StoreFailure(str(error), error.is_temporary))
        return failed

    def _ids_of(self, changes: Sequence[SettingsChange]) -> dict[str, str | None]:
        """Return the id of each topic whose change is not a deletion. Raises TopicUnavailable."""
        kept = [each for each in changes if not each.is_deleted]
        ids: dict[str, str | None] = {e.topic: text_of_id(e.topic_id) for e in kept if e.topic_id is not None}
        if unknown := [each.topic for each in kept if each.topic_id is None]:
            if self._admin is None:
                self._admin = admin_client(self._upstream)
            ids |= self._looked_up(unknown)
        return ids

    def _looked_up(self, topics: Sequence[str]) -> dict[str, str | None]:
        """Return the topics' ids. Brokers list a new topic only after a moment. Raises TopicUnavailable."""
        deadline = time.monotonic() + _LOOK_UP_SECONDS
        found = ids_of(self._admin, topics)
        while (missing := [topic for topic, its in found.items() if its is None]) and time.monotonic() < deadline:
            time.sleep(_AGAIN_SECONDS)
            found |= ids_of(self._admin, missing)
        return found

    def add_reload(self, time_ms: int, files: list[str], changes: dict[str, list[str]]) -> None:
        """Add policies that were reloaded from these files. `changes` contains lines by their effect."""
        more = len(files) - _MOST_FILES
        named = ", ".join(str(cut(each)) for each in files[:_MOST_FILES])
        actor = Actor("policy files", named + (f" and {more} more" if more > 0 else ""))
        self.history.add(entry_of_reload(uuid4().hex, time_ms, actor, changes, self._proxy))

    def close(self) -> None:
        """Stop reading, and write the queued entries. Blocks for up to a few seconds."""
        self.presence.close()
        self.topic.close()
        self.history.close()

    def _add_change(self, change: StateChange, before: AgreedState) -> None:
        taken = Taken(self._proxy, _now_ms())
        self.history.add(entry_of(change, before, taken))


def _now_ms() -> int:
    return time.time_ns() // 10**6
