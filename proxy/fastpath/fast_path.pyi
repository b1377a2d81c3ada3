from collections.abc import Callable
from typing import Any

from sluicegate.protocol.framing import OrdinaryFrames
from sluicegate.proxy.fastpath.loop_state import FastPathBuffer, PathCounts
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.in_flight import Exchange, InFlightQueue
from sluicegate.proxy.session.pacing import LoopTurn
from sluicegate.validation.ordinary import OrdinaryRequests

class FastRequests(OrdinaryFrames):
    def __init__(
        self,
        validate: OrdinaryRequests,
        counts: PathCounts,
        room: FastPathBuffer,
        side: Any,
        queue: InFlightQueue,
        max_in_flight: int,
        max_frame_bytes: int,
        turn: LoopTurn,
        read_buffer: memoryview,
        wider_buffer: memoryview,
    ) -> None: ...
    def lead(self, client: Connection, broker: Connection, turn_is_over: Callable[[Connection], None]) -> None: ...
    def remember(self, header_version: int, rest: bytes) -> None: ...
    def meter(self, charge: Callable[[int, int, Exchange | None, int], None] | None) -> None: ...
    def exchange(self, correlation_id: int, version: int) -> Exchange: ...
    def validate_gathered(self, frame: bytearray, version: int) -> int: ...

class FastResponses(OrdinaryFrames):
    def __init__(self, counts: PathCounts, queue: InFlightQueue, read_buffer: memoryview) -> None: ...
    def lead(self, client: Connection) -> None: ...
