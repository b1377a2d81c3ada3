"""Live figures for several who look: made once a second for all of them, and not at all while nobody does.

Streams are bounded in number, in what waits for each, and in time. A slow reader loses old messages
and gets the full state again when there is room.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

import structlog

from sluicegate.proxy.live.live_snapshot import LiveQuery
from sluicegate.proxy.live.live_state import LiveState
from sluicegate.proxy.reporting.logs.aggregation import OnceAMinute
from sluicegate.proxy.webui.site import NoStateAvailable

MAX_STREAMS = 8
STREAM_SECONDS = 3600.0
_TICK_SECONDS = 1.0
_MOST_WAITING = 3
_GROUPS = 60
_ALL = LiveQuery(seconds=900, after_ms=0, violation_groups=_GROUPS)
# Those of the last seconds come again, because several processes do not look at the same moment.
_OVERLAP_SECONDS = 4
_NEWEST = LiveQuery(_OVERLAP_SECONDS, 0, _GROUPS)

LookElsewhere = Callable[[LiveQuery], Awaitable[LiveState]]
"""Looks in a thread. Raises NoStateAvailable."""


class Stream:
    """What waits for one who looks."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[bytes] = asyncio.Queue(_MOST_WAITING)
        self.wants_all = True

    def put(self, message: bytes) -> None:
        """One more; who has not taken those before gets everything anew later."""
        if self._waiting.full():
            while not self._waiting.empty():
                self._waiting.get_nowait()
            self.wants_all = True
        else:
            self._waiting.put_nowait(message)

    async def messages(self) -> AsyncIterator[bytes]:
        """As they come."""
        while True:
            yield await self._waiting.get()


class Streams:
    """Belongs to one event loop."""

    def __init__(self, look: LookElsewhere) -> None:
        self._look = look
        self._open: set[Stream] = set()
        self._newest = _NEWEST
        self._feeding: asyncio.Task[None] | None = None
        self._complaints = OnceAMinute()
        self._log = structlog.get_logger("sluicegate.admin")

    def open(self) -> Stream | None:
        """One more; None: there are too many."""
        if len(self._open) >= MAX_STREAMS:
            return None
        stream = Stream()
        self._open.add(stream)
        if self._feeding is None or self._feeding.done():
            self._feeding = asyncio.get_running_loop().create_task(self._feed())
        return stream

    def close(self, stream: Stream) -> None:
        """Nobody reads it any more."""
        self._open.discard(stream)

    async def end(self) -> None:
        """No more is made."""
        if self._feeding is not None:
            self._feeding.cancel()
            with suppress(asyncio.CancelledError):
                await self._feeding

    async def _feed(self) -> None:
        loop = asyncio.get_running_loop()
        while self._open:
            began = loop.time()
            try:
                await self._feed_once()
            except Exception as error:  # whatever fails in showing it, the endpoint goes on
                if self._complaints.due(type(error).__name__) is not None:
                    self._log.error("live data failed", exc_info=error)
                self._tell(
                    set(self._open), event("trouble", {"text": f"figures cannot be made: {type(error).__name__}"})
                )
            await asyncio.sleep(max(0.1, _TICK_SECONDS - (loop.time() - began)))

    async def _feed_once(self) -> None:
        anew = {stream for stream in self._open if stream.wants_all}
        others = self._open - anew
        try:
            for streams, wish in ((anew, _ALL), (others, self._newest)):
                if streams:
                    state = await self._look(wish)
                    for stream in anew & streams:
                        stream.wants_all = False
                    self._tell(streams, event("live", state))
                    self._newest = replace(_NEWEST, after_ms=state["time_ms"] - _OVERLAP_SECONDS * 1000)
        except NoStateAvailable as error:
            self._tell(set(self._open), event("trouble", {"text": str(error)}))

    def _tell(self, streams: set[Stream], message: bytes) -> None:
        for stream in streams:
            stream.put(message)


def event(name: str, value: object) -> bytes:
    """As a server sends events."""
    return f"event: {name}\ndata: {json.dumps(value)}\n\n".encode()
