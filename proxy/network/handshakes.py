"""The TLS handshakes that are under way, on all listeners together: so many and no more."""

import asyncio
from contextlib import suppress
from time import monotonic

MAX_HANDSHAKES = 1000
"""Under way at once (some 57 kB each)."""

# A handshake that was given this long makes room for a new one where there is none left.
_UNDISTURBED_SECONDS = 1.0


class Handshakes:
    """Tasks that end by themselves in time, the oldest first."""

    def __init__(self) -> None:
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
        while len(self._began) >= MAX_HANDSHAKES:
            self._ended.clear()
            oldest, began = next(iter(self._began.items()))
            left = began + _UNDISTURBED_SECONDS - monotonic()
            if left <= 0:
                oldest.cancel(f"given up for a new one: {MAX_HANDSHAKES} handshakes were under way")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), left if left > 0 else _UNDISTURBED_SECONDS)

    def _end(self, handshake: asyncio.Task[None]) -> None:
        del self._began[handshake]
        self._ended.set()
