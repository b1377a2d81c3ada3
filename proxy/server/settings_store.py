"""Stores clients' topic settings in the state topic without blocking the event loop."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from sluicegate.proxy.network.daemon_thread import in_daemon_thread
from sluicegate.proxy.session.topic_settings import Failures, Requester, SettingsChange, StoreFailure
from sluicegate.proxy.state.shared_state import SharedState

CHANGE_SECONDS = 10.0
"""The time (s) within which changes of topic settings must be stored and in force."""
Commit = Callable[[Sequence[SettingsChange], Requester, Callable[[Failures], None]], None]
"""Stores changes without blocking; see `sluicegate.proxy.session.topic_settings.TopicSettings.commit`."""


class SettingsStore:
    """Stores settings in the process that reads the state topic. `shared` is None until the process reads it."""

    def __init__(self) -> None:
        self.shared: SharedState | None = None
        self._storing: set[asyncio.Task[dict[str, StoreFailure]]] = set()

    def commit(
        self, changes: Sequence[SettingsChange], requester: Requester, report: Callable[[Failures], None]
    ) -> None:
        """Store changes, as `TopicSettings.commit` describes."""
        task = asyncio.get_running_loop().create_task(self.stored(changes, requester))
        self._storing.add(task)
        task.add_done_callback(self._storing.discard)
        task.add_done_callback(lambda done: None if done.cancelled() else report(done.result()))

    async def stored(self, changes: Sequence[SettingsChange], requester: Requester) -> dict[str, StoreFailure]:
        """Store changes in a thread. Return the failure of each topic whose change failed."""
        if self.shared is None:
            return dict.fromkeys((each.topic for each in changes), StoreFailure("the proxy is starting"))
        return await in_daemon_thread(partial(self.shared.change_settings, changes, requester, CHANGE_SECONDS))
