"""Handles a broker's response to a Produce request and determines the outcome of the request's batches.

The handler is a generator without I/O, like the handler of the request (`sluicegate.proxy.session.produce.handler`).
None of its effects waits, so `run_at_once` performs them within the call that delivers the response.
"""

from typing import NamedTuple

from sluicegate.protocol.errors import ErrorCode, MalformedMessage
from sluicegate.protocol.framing import Parts
from sluicegate.protocol.produce_response import produce_body_at, walk_produce_response
from sluicegate.proxy.responses.produce_responses import ClientError, PartitionKey, StandInRequest, client_tail
from sluicegate.proxy.responses.rewriting import ResponseRewriter
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.effect import Steps
from sluicegate.proxy.session.produce.awaited_batches import AwaitedBatches
from sluicegate.proxy.session.produce.effects import LearnStoredTimes, ReleaseMemory, ReportBrokerErrors, Settle
from sluicegate.proxy.session.produce.quarantining import ProvenPartitions
from sluicegate.proxy.session.produce.stored_times import ExpectedTimes
from sluicegate.proxy.session.request_clock import RequestClock


class ForwardedRequest(NamedTuple):
    """A request that was forwarded to the broker.

    `stand_in_request` is None if nothing in the request is rejected. `sent` is the time when it was forwarded (s).
    """

    batches: AwaitedBatches
    stand_in_request: StandInRequest | None
    times: ExpectedTimes
    version: int
    acks: int
    most_entries: int
    sent: float

    @property
    def kept_bytes(self) -> int:
        """The number of bytes that are kept until the response arrives."""
        return self.batches.kept_bytes + (0 if self.stand_in_request is None else self.stand_in_request.kept_bytes)


class ProduceResponseHandler:
    """Handles the responses to one session's Produce requests."""

    def __init__(
        self, rewriter: ResponseRewriter, clock: RequestClock, identity: ClientIdentity, proven: ProvenPartitions
    ) -> None:
        self._rewriter = rewriter
        self._clock = clock
        self._identity = identity
        self._proven = proven

    def handle(self, forwarded: ForwardedRequest, frame: bytearray) -> Steps[Parts]:
        """Convert the broker's response into the client's response. Raises MalformedMessage."""
        version, stand_in_request, client_id = forwarded.version, forwarded.stand_in_request, self._identity.client_id
        try:
            response = walk_produce_response(frame, version, produce_body_at(frame, version), forwarded.most_entries)
            if stand_in_request is not None:
                parts = stand_in_request.merged(response, self._rewriter, client_id)
                errors = stand_in_request.client_errors
            else:
                errors = {
                    PartitionKey(entry.topic, entry.index): ClientError(entry.code, False) for entry in response.entries
                }
                parts = response.with_entries({}, client_tail(response, self._rewriter, client_id))
        except MalformedMessage:
            yield from self.end(forwarded)
            raise
        codes = {error.code for error in errors.values() if not error.is_ours and error.code != ErrorCode.NONE}
        if codes:
            yield from ReportBrokerErrors(frozenset(codes))
        if stand_in_request is not None:
            self._proven.learn(stand_in_request, forwarded.acks)
        yield from ReleaseMemory(forwarded.kept_bytes)
        yield from Settle(forwarded.batches.settled(errors, self._clock.now() - forwarded.sent))
        yield from LearnStoredTimes(forwarded.times, errors)
        return parts

    def end(self, forwarded: ForwardedRequest) -> Steps[None]:
        """Report the batches of a request that gets no response because the session has ended."""
        yield from ReleaseMemory(forwarded.kept_bytes)
        yield from Settle(forwarded.batches.settled({}, None))
