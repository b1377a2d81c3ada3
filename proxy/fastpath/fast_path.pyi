from collections.abc import Callable
from typing import Any

from sluicegate.protocol.framing import OrdinaryFrames
from sluicegate.proxy.session.broker_errors import BrokerErrors
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.in_flight import InFlightQueue, InFlightRequest
from sluicegate.proxy.session.pacing import LoopLateness
from sluicegate.proxy.session.produce.fast_outcomes import FastOutcomes
from sluicegate.proxy.session.request_clock import RequestClock
from sluicegate.validation.ordinary import BatchTally, OrdinaryRequests

class PathCounts:
    clock: RequestClock
    keys: int
    failed: Callable[[str, Exception], None]

    def __init__(self, clock: RequestClock, failed: Callable[[str, Exception], None]) -> None: ...
    def by_api(self) -> dict[int, int]: ...

class FastPathBuffer:
    total_bytes: int
    held_bytes: int
    def __init__(self, total_bytes: int) -> None: ...

class FastRequests(OrdinaryFrames):
    def __init__(
        self,
        validate: OrdinaryRequests,
        counts: PathCounts,
        room: FastPathBuffer,
        pass_through: Any,
        queue: InFlightQueue,
        max_in_flight: int,
        max_frame_bytes: int,
        lateness: LoopLateness,
        read_buffer: memoryview,
        wider_buffer: memoryview,
    ) -> None: ...
    def lead(self, client: Connection, broker: Connection, turn_is_over: Callable[[Connection], None]) -> None: ...
    def forget(self) -> None: ...
    def remember(self, header_version: int, rest: bytes, sender: BatchTally) -> None: ...
    def meter(self, charge: Callable[[int, int, InFlightRequest | None, int], None] | None) -> None: ...
    def new_in_flight(self, correlation_id: int, version: int) -> InFlightRequest: ...
    def validate_gathered(self, frame: bytearray, version: int) -> int: ...

class FastResponses(OrdinaryFrames):
    def __init__(self, counts: PathCounts, queue: InFlightQueue, read_buffer: memoryview) -> None: ...
    def lead(self, client: Connection, errors: BrokerErrors, outcomes: FastOutcomes) -> None: ...
