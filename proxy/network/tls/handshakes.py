"""The TLS handshakes that are under way, on all listeners together: so many and no more, and none for too long."""

import asyncio
from collections import Counter
from contextlib import suppress
from time import monotonic

from sluicegate.config.limits import Limits

MAX_HANDSHAKES = "limits.max_handshakes"
HANDSHAKE_SECONDS = "limits.handshake_seconds"

# A handshake that was given this long makes room for a new one where there is none left.
_UNDISTURBED_SECONDS = 1.0


class Handshakes:
    """Tasks that end by themselves in time, the oldest first. `seconds`: how long each may take."""

    def __init__(self, most: int, seconds: float, reached: Counter[str], cut_off: Counter[str]) -> None:
        """`reached` counts those that are given up for others, `cut_off` those that took too long, by key."""
        self.seconds = seconds
        self._most = most
        self._reached = reached
        self._cut_off = cut_off
        self._began: dict[asyncio.Task[None], float] = {}
        self._ended = asyncio.Event()

    def __len__(self) -> int:
        return len(self._began)

    def add(self, handshake: asyncio.Task[None]) -> None:
        """One more is under way."""
        self._began[handshake] = monotonic()
        handshake.add_done_callback(self._end)

    async def until_there_is_room(self) -> None:
        """Wait for one to end, or end the oldest, but none that has only begun: in a rush, all would be."""
        while len(self._began) >= self._most:
            self._ended.clear()
            oldest, began = next(iter(self._began.items()))
            left = began + _UNDISTURBED_SECONDS - monotonic()
            if left <= 0:
                self._reached[MAX_HANDSHAKES] += 1
                oldest.cancel(f"given up for a new one: {self._most} handshakes were under way ({MAX_HANDSHAKES})")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), left if left > 0 else _UNDISTURBED_SECONDS)

    def took_too_long(self, what: str) -> str:
        """Count one, and say so in words; `what` did not come."""
        self._cut_off[HANDSHAKE_SECONDS] += 1
        return f"{what} within {self.seconds:g} s ({HANDSHAKE_SECONDS})"

    def _end(self, handshake: asyncio.Task[None]) -> None:
        del self._began[handshake]
        self._ended.set()


def handshakes_of(limits: Limits, reached: Counter[str], cut_off: Counter[str]) -> Handshakes:
    """As they are configured."""
    return Handshakes(limits.max_handshakes, limits.handshake_seconds, reached, cut_off)
