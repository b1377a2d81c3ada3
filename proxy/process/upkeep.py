"""What a proxy does again and again while it runs, besides its look at the cluster."""

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable

import structlog

from sluicegate.proxy.process.allocator import Allocator
from sluicegate.proxy.process.assembly import Assembled
from sluicegate.proxy.process.clock import now_ms
from sluicegate.proxy.process.health import Health
from sluicegate.proxy.session.session import Session

_SWEEP_SECONDS = 2.0
# How often a connection's waits are looked at, and how many connections are before the loop does other things.
_LOOK_SECONDS = 1.0
_LOOKS_AT_ONCE = 200
_FEW_SESSIONS = 100


async def keep_on(step: Callable[[], Awaitable[None]]) -> None:
    """What is done every few seconds goes on being done, whatever happens in between."""
    while True:
        try:
            await step()
        except Exception as error:
            structlog.get_logger("sluicegate").error(
                "our fault: something that is done again and again failed", exc_info=error
            )
            await asyncio.sleep(_SWEEP_SECONDS)


class Upkeep:
    """Of one proxy. Each method takes its time, and is called again when it is done."""

    def __init__(self, parts: Assembled, health: Health, allocator: Allocator, frame_seconds: float) -> None:
        self._parts = parts
        self._health = health
        self._allocator = allocator
        self._look_seconds = min(_LOOK_SECONDS, frame_seconds / 4)

    async def sweep(self) -> None:
        """Write what has gathered, forget what is over, give memory back."""
        parts = self._parts
        self._health.beat()
        parts.observer.sweep()
        parts.log.sweep()
        parts.names.sweep(now_ms())
        if self._allocator.has_grown:
            if len(parts.sessions) <= _FEW_SESSIONS:
                gc.collect()
            await asyncio.to_thread(self._allocator.trim)
        await asyncio.sleep(_SWEEP_SECONDS)

    async def look_at_sessions(self) -> None:
        """End what has been waited for too long."""
        await asyncio.sleep(self._look_seconds)
        sessions = list(self._parts.sessions)
        for first in range(0, len(sessions), _LOOKS_AT_ONCE):
            now = time.monotonic()
            for session in sessions[first : first + _LOOKS_AT_ONCE]:
                _look(session, now)
            await asyncio.sleep(0)


def _look(session: Session, now: float) -> None:
    try:
        session.look(now)
    except Exception as error:  # ours, and no reason to leave the others unwatched
        session.on_our_fault(session.client, error)
