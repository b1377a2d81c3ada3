"""Gathered frames that were written as they lie: others have their buffers once the system has taken them."""

from collections.abc import Callable
from typing import Any

from sluicegate.protocol.frame_pool import FramePool
from sluicegate.proxy.session.connection import Connection


class SentFrames:
    """Those written to one connection within one turn of the loop."""

    def __init__(self, connection: Connection, pool: FramePool, call_soon: Callable[..., Any]) -> None:
        self._connection = connection
        self._pool = pool
        self._call_soon = call_soon
        self._frames: list[bytearray] = []

    def add(self, frame: bytearray) -> None:
        """One was written."""
        self._frames.append(frame)
        if len(self._frames) == 1:
            self._call_soon(self._give_back)

    def _give_back(self) -> None:
        """What the system has not taken yet is the transport's, and goes with it."""
        if self._connection.has_sent_all:
            for frame in self._frames:
                self._pool.give_back(frame)
        self._frames.clear()
