"""Collects all workers' snapshots for the web UI.

Missing workers are named, because otherwise the others' figures would be taken for the total.
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
from sluicegate.proxy.workers.messages import SnapshotRequest, WorkerSnapshot


class MessageSender(Protocol):
    """Sends messages to a worker without waiting."""

    def send(self, request: SnapshotRequest, /) -> None: ...


class SnapshotSource(Protocol):
    """A worker that can send snapshots."""

    @property
    def index(self) -> int: ...
    @property
    def takes_connections(self) -> bool: ...
    @property
    def outbox(self) -> MessageSender: ...


class WorkerSnapshots:
    """Requests snapshots. Each worker gets only one request at a time, so that none pile up for a worker that hangs."""

    def __init__(self, within_seconds: float) -> None:
        """`within_seconds` is how long to wait for all snapshots."""
        self._within_seconds = within_seconds
        self._number = 0
        self._pending: set[int] = set()
        self._states: dict[int, LiveState] = {}
        self._changed = asyncio.Event()

    async def ask(
        self, workers: Collection[SnapshotSource], query: LiveQuery
    ) -> tuple[list[LiveState], list[ActiveCondition]]:
        """Return the workers' snapshots, and a condition for each missing one. Concurrent calls are not allowed."""
        self._number += 1
        self._states.clear()
        requested = [worker for worker in workers if worker.takes_connections and worker.index not in self._pending]
        for worker in requested:
            self._pending.add(worker.index)
            worker.outbox.send(SnapshotRequest(query, self._number))
        with suppress(TimeoutError):
            async with asyncio.timeout(self._within_seconds):
                while any(worker.index in self._pending for worker in requested):
                    self._changed.clear()
                    await self._changed.wait()
        missing = [worker for worker in workers if worker.index not in self._states]
        return list(self._states.values()), [self._why_missing(worker) for worker in missing]

    def received(self, index: int, snapshot: WorkerSnapshot) -> None:
        """Store a worker's snapshot unless it is too late."""
        self._pending.discard(index)
        if snapshot.number == self._number:
            self._states[index] = snapshot.state
        self._changed.set()

    def ended(self, index: int) -> None:
        """Stop waiting for a worker that has ended."""
        self._pending.discard(index)
        self._changed.set()

    def _why_missing(self, worker: SnapshotSource) -> ActiveCondition:
        why = "it has not responded in time" if worker.takes_connections else "it has not started yet"
        name, silent = f"worker {worker.index}", Condition.WORKER_UNRESPONSIVE
        detail = f"the figures of {name} are missing here: {why}"
        return ActiveCondition(silent, silent.type.state, name, detail, time.time_ns() // 10**6)
