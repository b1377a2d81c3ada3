"""The requests of one session that a broker has: each response settles the batches of its request."""

from functools import partial
from typing import NamedTuple, Protocol

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.errors import ErrorCode, MalformedMessage
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.produce_response import produce_body_at, walk_produce_response
from sluicegate.proxy.responses.dispatch import Dispatch
from sluicegate.proxy.responses.produce_responses import (
    ClientError,
    PartitionKey,
    StandInRequest,
    client_tail,
    most_entries,
)
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.in_flight import InFlightRequest
from sluicegate.proxy.session.pause_reason import Pausable, PauseReason
from sluicegate.proxy.session.produce.awaited_batches import AwaitedBatches
from sluicegate.proxy.session.produce.dependencies import ProduceDependencies
from sluicegate.proxy.session.produce.quarantining import ProvenPartitions
from sluicegate.proxy.session.produce.stored_times import ExpectedTimes, StoredTimes

_PRODUCE = ApiKey.PRODUCE.value
# The bytes of rejections and findings that one connection may keep before it is paused.
_MOST_KEPT_BYTES = 64 * 1024


class ThrottleTimes(Protocol):
    """Reports throttle times of quotas in responses."""

    def with_throttle(self, in_flight: InFlightRequest, version: int) -> InFlightRequest: ...


class _Awaited(NamedTuple):
    """One request. `stand_in_request` None: nothing of it is rejected."""

    batches: AwaitedBatches
    stand_in_request: StandInRequest | None
    times: ExpectedTimes
    version: int
    acks: int
    most_entries: int
    sent: float

    @property
    def kept_bytes(self) -> int:
        """The bytes that are kept until the response."""
        return self.batches.kept_bytes + (0 if self.stand_in_request is None else self.stand_in_request.kept_bytes)


class AwaitedResponses:
    """Pauses the client while more than 64 KiB are kept for responses."""

    def __init__(
        self,
        shared: ProduceDependencies,
        identity: ClientIdentity,
        client: Pausable,
        throttle: ThrottleTimes,
        stored_times: StoredTimes,
        proven: ProvenPartitions,
    ) -> None:
        self._shared = shared
        self._identity = identity
        self._client = client
        self._throttle = throttle
        self._stored_times = stored_times
        self._proven = proven
        self._kept_bytes = 0

    def expect(
        self, request: ProduceRequest, correlation_id: int, batches: AwaitedBatches, dispatch: Dispatch
    ) -> InFlightRequest:
        """Return the request in flight for a request that is forwarded now."""
        awaited = _Awaited(
            batches,
            dispatch.stand_in_request,
            self._stored_times.expect(request, dispatch.validated),
            request.version,
            request.acks,
            most_entries(request),
            self._shared.clock.now(),
        )
        self._kept_bytes += awaited.kept_bytes
        if self._kept_bytes > _MOST_KEPT_BYTES:
            self._client.pause(PauseReason.REJECTIONS)
        in_flight = InFlightRequest(correlation_id, partial(self._responded, awaited))
        in_flight.ended = partial(self._ended, awaited)
        return self._throttle.with_throttle(in_flight, request.version)

    def _responded(self, awaited: _Awaited, frame: bytearray) -> Parts:
        """Return what the client gets for the broker's response. Raises MalformedMessage."""
        shared, version, stand_in_request = self._shared, awaited.version, awaited.stand_in_request
        try:
            response = walk_produce_response(frame, version, produce_body_at(frame, version), awaited.most_entries)
            if stand_in_request is not None:
                parts = stand_in_request.merged(response, shared.rewriter, self._identity.client_id)
                errors = stand_in_request.client_errors
            else:
                errors = {
                    PartitionKey(entry.topic, entry.index): ClientError(entry.code, False) for entry in response.entries
                }
                parts = response.with_entries({}, client_tail(response, shared.rewriter, self._identity.client_id))
        except MalformedMessage:
            self._ended(awaited)
            raise
        for code in {error.code for error in errors.values() if not error.is_ours and error.code != ErrorCode.NONE}:
            shared.broker_errors.broker_error(self._identity, _PRODUCE, code)
        if stand_in_request is not None:
            self._proven.learn(stand_in_request, awaited.acks)
        self._forget(awaited)
        shared.validations.settled(awaited.batches.settled(errors, shared.clock.now() - awaited.sent))
        self._stored_times.responded(awaited.times, errors)
        return parts

    def _ended(self, awaited: _Awaited) -> None:
        """Settle the batches of a request that gets no response: the session has ended."""
        self._forget(awaited)
        self._shared.validations.settled(awaited.batches.settled({}, None))

    def _forget(self, awaited: _Awaited) -> None:
        self._kept_bytes -= awaited.kept_bytes
        if self._kept_bytes <= _MOST_KEPT_BYTES:
            self._client.resume(PauseReason.REJECTIONS)
