"""Streams live data to web UIs.

The data are collected once a second for all streams together, and not at all without streams. The number of streams,
their waiting messages and their duration are limited. A slow reader loses old messages, and gets the full state again
when its queue has room.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

import structlog

from sluicegate.proxy.live.live_snapshot import EVERYTHING, LiveQuery
from sluicegate.proxy.live.live_state import LiveState
from sluicegate.proxy.reporting.logs.aggregation import OnceAMinute
from sluicegate.proxy.webui.site import NoStateAvailable

MAX_STREAMS = 8
STREAM_SECONDS = 3600.0
_TICK_SECONDS = 1.0
_MOST_WAITING = 3
_ALL = EVERYTHING
# The last seconds are sent again, because different processes do not report at the same moment.
_OVERLAP_SECONDS = 4
_NEWEST = replace(EVERYTHING, seconds=_OVERLAP_SECONDS)

AwaitState = Callable[[LiveQuery], Awaitable[LiveState]]
"""Collects the state in a thread. Raises NoStateAvailable."""


class Stream:
    """The messages that wait for one reader."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[bytes] = asyncio.Queue(_MOST_WAITING)
        self.needs_full = True

    def put(self, message: bytes) -> None:
        """Queue a message. If the queue is full, drop it and mark the stream for the full state."""
        if self._waiting.full():
            while not self._waiting.empty():
                self._waiting.get_nowait()
            self.needs_full = True
        else:
            self._waiting.put_nowait(message)

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield messages as they arrive."""
        while True:
            yield await self._waiting.get()


class Streams:
    """All open streams of one event loop."""

    def __init__(self, read_state: AwaitState) -> None:
        self._read_state = read_state
        self._open: set[Stream] = set()
        self._newest = _NEWEST
        self._feeding: asyncio.Task[None] | None = None
        self._complaints = OnceAMinute()
        self._log = structlog.get_logger("sluicegate.admin")

    def open(self) -> Stream | None:
        """Open a new stream, or return None if there are too many."""
        if len(self._open) >= MAX_STREAMS:
            return None
        stream = Stream()
        self._open.add(stream)
        if self._feeding is None or self._feeding.done():
            self._feeding = asyncio.get_running_loop().create_task(self._feed())
        return stream

    def close(self, stream: Stream) -> None:
        """Remove a stream that no longer has a reader."""
        self._open.discard(stream)

    async def end(self) -> None:
        """Stop feeding streams."""
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
            except Exception as error:  # an error in one round must not end the endpoint
                if self._complaints.due(type(error).__name__) is not None:
                    self._log.error("live data failed", exc_info=error)
                self._send(set(self._open), event("problem", {"text": f"internal error: {type(error).__name__}"}))
            await asyncio.sleep(max(0.1, _TICK_SECONDS - (loop.time() - began)))

    async def _feed_once(self) -> None:
        full = {stream for stream in self._open if stream.needs_full}
        others = self._open - full
        try:
            for streams, wish in ((full, _ALL), (others, self._newest)):
                if streams:
                    state = await self._read_state(wish)
                    for stream in full & streams:
                        stream.needs_full = False
                    self._send(streams, event("live", _message(state, wish)))
                    self._newest = replace(_NEWEST, after_ms=state["time_ms"] - _OVERLAP_SECONDS * 1000)
        except NoStateAvailable as error:
            self._send(set(self._open), event("problem", {"text": str(error)}))

    def _send(self, streams: set[Stream], message: bytes) -> None:
        for stream in streams:
            stream.put(message)


def _message(state: LiveState, query: LiveQuery) -> dict[str, object]:
    """Return the state, with only the violation groups that have changed. `complete` is true if it
    contains all groups.
    """
    changed = [group for group in state["violation_groups"] if group["last_ms"] > query.after_ms]
    return {**state, "violation_groups": changed, "complete": query.after_ms == 0}


def event(name: str, value: object) -> bytes:
    """Encode a server-sent event (WHATWG HTML, section 9.2)."""
    return f"event: {name}\ndata: {json.dumps(value)}\n\n".encode()
