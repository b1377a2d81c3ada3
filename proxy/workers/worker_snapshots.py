"""What all workers of one proxy see, asked for while somebody looks at its page. Whose view is not there is named: what
is shown without it would be taken for all there is.
"""

import asyncio
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Protocol

from sluicegate.proxy.live.live_snapshot import LiveQuery
from sluicegate.proxy.live.live_state import LiveState
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import ActiveCondition
from sluicegate.proxy.workers.messages import Look, Looked


class Asked(Protocol):
    """Takes words for a worker and never waits."""

    def say(self, word: Look, /) -> None: ...


class Watched(Protocol):
    """A worker that can be asked."""

    @property
    def index(self) -> int: ...
    @property
    def takes_connections(self) -> bool: ...
    @property
    def outbox(self) -> Asked: ...


class WorkersLook:
    """Asks one worker at most one thing at a time, so that for one that hears nothing, nothing piles up."""

    def __init__(self, within_seconds: float) -> None:
        """A look takes no longer than that."""
        self._within_seconds = within_seconds
        self._number = 0
        self._owing: set[int] = set()
        self._seen: dict[int, LiveState] = {}
        self._changed = asyncio.Event()

    async def ask(self, workers: Collection[Watched], wish: LiveQuery) -> tuple[list[LiveState], list[ActiveCondition]]:
        """What the workers see, and a line for each whose view is missing. One look at a time."""
        self._number += 1
        self._seen.clear()
        asked = [worker for worker in workers if worker.takes_connections and worker.index not in self._owing]
        for worker in asked:
            self._owing.add(worker.index)
            worker.outbox.say(Look(wish, self._number))
        with suppress(TimeoutError):
            async with asyncio.timeout(self._within_seconds):
                while any(worker.index in self._owing for worker in asked):
                    self._changed.clear()
                    await self._changed.wait()
        missing = [worker for worker in workers if worker.index not in self._seen]
        return list(self._seen.values()), [self._why_missing(worker) for worker in missing]

    def answered(self, index: int, looked: Looked) -> None:
        """A worker has said what it sees; what comes too late counts no more."""
        self._owing.discard(index)
        if looked.number == self._number:
            self._seen[index] = looked.state
        self._changed.set()

    def ended(self, index: int) -> None:
        """A worker will not answer any more."""
        self._owing.discard(index)
        self._changed.set()

    def _why_missing(self, worker: Watched) -> ActiveCondition:
        why = "it has not responded in time" if worker.takes_connections else "it has not started yet"
        name, silent = f"worker {worker.index}", Condition.WORKER_SILENT
        detail = f"the figures of {name} are missing here: {why}"
        return ActiveCondition(silent, silent.type.state, name, detail, time.time_ns() // 10**6)
