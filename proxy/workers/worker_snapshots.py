"""Collect the snapshots of all workers for the web UI. Missing workers are named, because the others' figures would
otherwise be taken for all.
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
    """Sends messages to a worker without waiting."""

    def say(self, word: Look, /) -> None: ...


class Watched(Protocol):
    """A worker that can send snapshots."""

    @property
    def index(self) -> int: ...
    @property
    def takes_connections(self) -> bool: ...
    @property
    def outbox(self) -> Asked: ...


class WorkerSnapshots:
    """Requests snapshots, at most one at a time from each worker, so that none pile up for a worker that hangs."""

    def __init__(self, within_seconds: float) -> None:
        """`within_seconds`: how long to wait for all snapshots."""
        self._within_seconds = within_seconds
        self._number = 0
        self._owing: set[int] = set()
        self._seen: dict[int, LiveState] = {}
        self._changed = asyncio.Event()

    async def ask(self, workers: Collection[Watched], wish: LiveQuery) -> tuple[list[LiveState], list[ActiveCondition]]:
        """Return the workers' snapshots, and a line for each missing one. Do not call it concurrently."""
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
        """Store a worker's snapshot, unless it is late."""
        self._owing.discard(index)
        if looked.number == self._number:
            self._seen[index] = looked.state
        self._changed.set()

    def ended(self, index: int) -> None:
        """Stop waiting for a worker that has ended."""
        self._owing.discard(index)
        self._changed.set()

    def _why_missing(self, worker: Watched) -> ActiveCondition:
        why = "it has not responded in time" if worker.takes_connections else "it has not started yet"
        name, silent = f"worker {worker.index}", Condition.WORKER_SILENT
        detail = f"the figures of {name} are missing here: {why}"
        return ActiveCondition(silent, silent.type.state, name, detail, time.time_ns() // 10**6)
