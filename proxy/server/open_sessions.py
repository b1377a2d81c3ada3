"""A proxy's open sessions, and statistics about their connections."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sluicegate.proxy.reporting.metrics.counters import Counters, Gauges
from sluicegate.proxy.scheduling.extraction import QuarantineMemory
from sluicegate.proxy.server.process_resources import resident_bytes
from sluicegate.proxy.session.handlers.session import Session
from sluicegate.proxy.session.memory import GatherBudget, MemoryShare

if TYPE_CHECKING:
    from sluicegate.proxy.fastpath.fast_path import FastPathBuffer


class OpenSessions:
    """One proxy's open sessions, counted in `counters`."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._sessions: set[Session] = set()
        self._one_ended = asyncio.Event()

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[Session]:
        """Iterate over a copy of the open sessions. Thread-safe."""
        return iter(list(self._sessions))

    def opened(self, session: Session) -> None:
        """Add a session that was admitted."""
        self._sessions.add(session)
        self._counters.connections_opened += 1

    def ended(self, session: Session) -> None:
        """Remove a session that has ended, whether or not its client was admitted."""
        if session in self._sessions:
            self._sessions.discard(session)
            self._counters.connections_closed += 1
            self._one_ended.set()

    def requests_in_flight(self) -> int:
        """Return the number of in-flight requests in all sessions. Thread-safe."""
        return sum(len(session.queue) for session in self)

    async def wait_until_all_ended(self) -> None:
        """Wait until no session is open."""
        while self._sessions:
            self._one_ended.clear()
            await self._one_ended.wait()


# All brokers beyond this number share one count, because the cluster determines how many brokers there are.
_MOST_BROKERS = 500
_OTHERS = "other"


class ConnectionStats:
    """One process's connection statistics, from the last complete round over all sessions."""

    def __init__(
        self, budget: GatherBudget, fast_path_buffer: "FastPathBuffer | None", quarantine: QuarantineMemory
    ) -> None:
        self._shares: dict[str, MemoryShare | FastPathBuffer] = {
            "small_requests": budget.small,
            "large_requests": budget.large,
            "small_responses": budget.small_responses,
            "large_responses": budget.large_responses,
        }
        if fast_path_buffer is not None:
            self._shares["ordinary_requests"] = fast_path_buffer
        self._quarantine = quarantine
        self._round = Gauges()
        self._last = Gauges()

    def count(self, session: Session) -> None:
        """Count a session in this round."""
        found = self._round
        found.connections[session.stage.name.lower()] += 1
        for side, connection in (("client", session.client), ("broker", session.broker)):
            for hold in connection.pause_reasons:
                found.paused[side, hold.name.lower()] += 1
        if session.wants_broker:
            self.count_broker(session.route_label, "open" if session.broker.is_open else "connecting")

    def count_broker(self, label: str, state: str) -> None:
        """Count a connection to a broker. `label` names the broker's listener."""
        self._round.upstream[self._broker(label), state] += 1

    def end_round(self) -> None:
        """End the round. Its counts become the current statistics."""
        self._last, self._round = self._round, Gauges()

    def gauges(self) -> Gauges:
        """Return the current values. Thread-safe."""
        last = self._last
        held: Mapping[str, int] = {name: share.held_bytes for name, share in self._shares.items()}
        budget: Mapping[str, int] = {name: share.total_bytes for name, share in self._shares.items()}
        quarantine = self._quarantine
        return Gauges(
            connections=last.connections,
            paused=last.paused,
            upstream=last.upstream,
            buffered_bytes=Counter({**held, "quarantine": quarantine.total_bytes - quarantine.free_bytes}),
            budget_bytes=Counter({**budget, "quarantine": quarantine.total_bytes}),
            resident_bytes=resident_bytes(),
        )

    def _broker(self, label: str) -> str:
        upstream = self._round.upstream
        is_known = len(upstream) < _MOST_BROKERS or (label, "open") in upstream or (label, "connecting") in upstream
        return label if is_known else _OTHERS
