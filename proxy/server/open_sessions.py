"""The sessions that there are."""

import asyncio
from collections.abc import Iterator

from sluicegate.proxy.reporting.metrics.counters import Tally
from sluicegate.proxy.session.session import Session


class OpenSessions:
    """Those of one proxy, counted in `tally`."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._sessions: set[Session] = set()
        self._one_ended = asyncio.Event()

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[Session]:
        """Those at this moment, whoever comes or goes meanwhile; may be asked from another thread."""
        return iter(list(self._sessions))

    def opened(self, session: Session) -> None:
        """One was let in."""
        self._sessions.add(session)
        self._tally.connections_opened += 1

    def ended(self, session: Session) -> None:
        """One is over, let in or not."""
        if session in self._sessions:
            self._sessions.discard(session)
            self._tally.connections_closed += 1
            self._one_ended.set()

    def requests_in_flight(self) -> int:
        """Of all together; may be asked from another thread."""
        return sum(len(session.queue) for session in self)

    async def all_ended(self) -> None:
        """Wait until none is left."""
        while self._sessions:
            self._one_ended.clear()
            await self._one_ended.wait()
