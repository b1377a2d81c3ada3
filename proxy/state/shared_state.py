"""The topics that the proxies of a cluster share, with the agreed state, the history of changes, and the presence of
proxies.
"""

import time
from collections.abc import Callable
from uuid import uuid4

from sluicegate.config.state import StateTopics
from sluicegate.config.upstream import Upstream
from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.write_health import WriteHealth
from sluicegate.proxy.state.agreed_state import AgreedState
from sluicegate.proxy.state.change import Actor, StateChange
from sluicegate.proxy.state.history_entry import Taken, entry_of, entry_of_reload
from sluicegate.proxy.state.history_topic import HistoryTopic
from sluicegate.proxy.state.presence import Presence
from sluicegate.proxy.state.presence_topic import PresenceTopic
from sluicegate.proxy.state.state_topic import StateTopic
from sluicegate.proxy.state.topic_plan import plans_of
from sluicegate.proxy.status.status import Status

_MOST_FILES = 3


class SharedState:
    """Reads the state topic after `start`, and writes a history entry for each change that it applies.

    `proxy` is the name of this proxy. `on_state` receives each state in the reading thread. `health` records the
    results of writes to the other two topics. `announcement` returns this proxy's announcement.
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
    ) -> None:
        self._proxy = proxy
        self.history = HistoryTopic(keys.history, upstream, health)
        self.topic = StateTopic(keys, upstream, on_state, self._add_change, status)
        _, _, plan = plans_of(keys)
        self.presence = PresenceTopic(plan, upstream, announcement, health)
        self.commit = self.topic.commit

    def start(self) -> None:
        """Begin to read the state, and to announce this proxy."""
        self.topic.start()
        self.presence.start()

    def add_reload(self, time_ms: int, files: list[str], changes: dict[str, list[str]]) -> None:
        """Add policies that were reloaded from these files. `changes` contains lines by their effect."""
        more = len(files) - _MOST_FILES
        named = ", ".join(str(cut(each)) for each in files[:_MOST_FILES])
        actor = Actor("policy files", named + (f" and {more} more" if more > 0 else ""))
        self.history.add(entry_of_reload(uuid4().hex, time_ms, actor, changes, self._proxy))

    def close(self) -> None:
        """Stop reading, and write the queued entries. Blocks for at most some seconds."""
        self.presence.close()
        self.topic.close()
        self.history.close()

    def _add_change(self, change: StateChange, before: AgreedState) -> None:
        taken = Taken(self._proxy, time.time_ns() // 10**6)
        self.history.add(entry_of(change, before.suspensions, taken))
