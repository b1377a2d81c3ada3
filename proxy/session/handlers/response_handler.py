"""Handles a broker's frames: matches each response with its request and finishes it."""

from sluicegate.protocol.errors import ResponseOutOfOrder
from sluicegate.protocol.framing import SIZE_BYTES, Disposition
from sluicegate.protocol.headers import CORRELATION_ID_BYTES, read_correlation_id
from sluicegate.proxy.session.broker_errors import BrokerErrors
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.delivery import Delivery
from sluicegate.proxy.session.in_flight import ANY_CORRELATION_ID, InFlightQueue, InFlightRequest
from sluicegate.proxy.session.limit_names import GATHERED_BYTES
from sluicegate.proxy.session.memory import GatherBudget, Gathering
from sluicegate.proxy.session.pacing import SessionTurns
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.produce.fast_outcomes import FastOutcomes
from sluicegate.proxy.session.reports import SessionCounts
from sluicegate.proxy.session.request_clock import RequestClock
from sluicegate.proxy.session.request_runner import RequestRunner

_STREAM, _GATHER = Disposition.STREAM, Disposition.GATHER


class ResponseHandler:
    """Forwards most responses as they arrive, and gathers and finishes the others."""

    def __init__(
        self,
        client: Connection,
        broker: Connection,
        queue: InFlightQueue,
        delivery: Delivery,
        turns: SessionTurns,
        budget: GatherBudget,
        clock: RequestClock,
        counts: SessionCounts,
        errors: BrokerErrors,
        fast: FastOutcomes,
        runner: RequestRunner,
    ) -> None:
        self._client = client
        self._broker = broker
        self._queue = queue
        self._delivery = delivery
        self._turns = turns
        self._clock = clock
        self._counts = counts
        self._errors = errors
        self._fast = fast
        self._runner = runner
        self._with_code: InFlightRequest | None = None
        self._gathered: InFlightRequest | None = None
        self._is_first = True
        self._small_frame_bytes = budget.small_frame_bytes
        self._small = Gathering(budget.small_responses, self._memory_came)
        self._large = Gathering(budget.large_responses, self._memory_came)

    def on_room(self, more: int, size: int) -> None:
        """Reserve memory for `more` bytes of a response that is being gathered."""
        gathering = self._small if size <= self._small_frame_bytes else self._large
        if not gathering.reserve(more):
            self._broker.pause(PauseReason.MEMORY)
            self._counts.limits_reached[GATHERED_BYTES] += 1

    @property
    def other_connections_wait(self) -> bool:
        """Whether other connections wait for memory that this handler holds."""
        small, large = self._small, self._large
        return bool(small.held and small.other_connections_wait) or bool(large.held and large.other_connections_wait)

    def release_memory(self) -> None:
        """Free the memory of responses that the client has read and that no handler is using."""
        if not self._broker.is_gathering and not self._client.is_full and not self._runner.is_busy:
            self._settle()

    def _settle(self) -> None:
        self._small.settle()
        self._large.settle()

    def give_up(self) -> None:
        """Free all memory after the broker has disconnected."""
        self._small.leave()
        self._large.leave()

    def end(self) -> None:
        """Clean up at the end of the session. The in-flight requests get no response."""
        self.give_up()
        self._with_code = None
        if self._gathered is not None:
            self._unanswered(self._gathered)
            self._gathered = None
        self._queue.end(self._unanswered)

    def _unanswered(self, in_flight: InFlightRequest) -> None:
        if in_flight.ended is not None:
            in_flight.ended()
        elif in_flight.sender is not None:
            self._fast.unanswered(in_flight)

    def _memory_came(self) -> None:
        self._broker.resume(PauseReason.MEMORY)

    def on_head(self, size: int, head: bytes) -> Disposition:
        """Match a response with the oldest request. Raises ResponseOutOfOrder if they do not match."""
        self._delivery.flush_ready()
        in_flight = self._queue.pop_awaited()
        received = read_correlation_id(head) if size >= CORRELATION_ID_BYTES else None
        if in_flight is None:
            raise ResponseOutOfOrder(None, received)
        if in_flight.correlation_id not in (ANY_CORRELATION_ID, received):
            raise ResponseOutOfOrder(in_flight.correlation_id, received)
        if in_flight.stands_for:
            self._clock.response_began(in_flight)
        self._with_code = in_flight if in_flight.code_at != 0 else None
        if in_flight.finish is None and in_flight.sender is None:
            return _STREAM
        self._gathered = in_flight
        if not self._is_first and self._turns.check_lateness():
            self._turns.pause_for_others(self._broker)
        self._is_first = False
        return _GATHER

    def begin_turn(self) -> None:
        """Start a new turn once all input was read or has to wait."""
        self._is_first = True

    def on_pass(self, data: memoryview) -> None:
        """Forward bytes of an unchanged response."""
        if self._with_code is not None:
            self._errors.read(self._with_code, data[SIZE_BYTES:])
            self._with_code = None
        self._client.write(bytes(data))

    def on_frame(self, frame: bytearray) -> None:
        """Finish a gathered response."""
        in_flight, self._gathered = self._gathered, None
        assert in_flight is not None
        if self._with_code is not None:
            self._errors.read(self._with_code, frame)
            self._with_code = None
        if in_flight.sender is not None:
            self._fast.settle(in_flight, frame)
        response = (frame,) if in_flight.finish is None else in_flight.finish(frame)
        if response is not None:
            self._delivery.deliver(response)
        # A response to one of the proxy's own requests stays in memory while a handler uses it.
        is_kept = response is None and self._runner.is_busy
        if not self._client.is_full and not is_kept:
            self._settle()
