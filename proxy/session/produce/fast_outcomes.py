"""Counts the outcomes of batches that the fast path has forwarded.

It is used if the broker does not store all of a request's batches, or if no response arrives.
"""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.errors import ErrorCode, MalformedMessage
from sluicegate.protocol.produce_response import produce_body_at, walk_produce_response
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.in_flight import InFlightRequest
from sluicegate.proxy.session.produce.batch_outcome import outcome_of
from sluicegate.proxy.session.produce.dependencies import Validations
from sluicegate.proxy.session.reports import BrokerErrorSink
from sluicegate.validation.outcome import Outcome

if TYPE_CHECKING:
    from sluicegate.validation.ordinary import BatchTally

_PRODUCE = ApiKey.PRODUCE.value
_MAX_ENTRIES = 10_000  # the fast path accepts no request with more topics or partitions


class FastOutcomes:
    """The outcomes of batches on one session's fast path. `names` maps topic ids to topic names."""

    def __init__(
        self,
        identity: ClientIdentity,
        names: Mapping[bytes, str],
        validations: Validations,
        broker_errors: BrokerErrorSink,
    ) -> None:
        self._identity = identity
        self._names = names
        self._validations = validations
        self._broker_errors = broker_errors

    def settle(self, in_flight: InFlightRequest, frame: bytearray) -> None:
        """Count a request's batches by the broker's response. A malformed response is treated as no response."""
        version = in_flight.version
        try:
            response = walk_produce_response(frame, version, produce_body_at(frame, version), _MAX_ENTRIES)
        except MalformedMessage:
            self.unanswered(in_flight)
            return
        sender = in_flight.sender
        tallies: dict[str | None, BatchTally] = {}
        left: Counter[str | None] = Counter()
        for tally, batches in _shares_of(in_flight):
            tallies[tally.name] = tally
            left[tally.name] += batches
        for entry in response.entries:
            name = entry.topic if isinstance(entry.topic, str) else self._names.get(entry.topic)
            if left[name] == 0:
                continue  # this topic is not validated
            left[name] -= 1
            outcome = outcome_of(entry.code)
            if outcome is Outcome.ACCEPTED:
                sender.accept(1)
                tallies[name].accept(1)
            else:
                self._validations.not_accepted(sender.name, sender.holder, name, outcome)
        for name, batches in left.items():
            if batches:
                sender.leave_unknown(batches)
                tallies[name].leave_unknown(batches)
        for code in {entry.code for entry in response.entries} - {ErrorCode.NONE}:
            self._broker_errors.broker_error(self._identity, _PRODUCE, code)

    def unanswered(self, in_flight: InFlightRequest) -> None:
        """Count the batches of a request that gets no response."""
        in_flight.sender.leave_unknown(in_flight.batches)
        for tally, batches in _shares_of(in_flight):
            tally.leave_unknown(batches)


def _shares_of(in_flight: InFlightRequest) -> "list[tuple[BatchTally, int]]":
    """Return a request's topics, each with its number of batches."""
    if isinstance(in_flight.topics, list):
        return in_flight.topics
    return [(in_flight.topics, in_flight.batches)]
