"""The effects of the Produce handler (`sluicegate.proxy.session.produce.handler`), as values.

`sluicegate.proxy.session.produce.effect_performer` performs them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sluicegate.protocol.framing import Parts
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.proxy.responses.dispatch import DeadLetters
from sluicegate.proxy.session.in_flight import InFlightRequest
from sluicegate.proxy.session.quotas.shares import TopicShares
from sluicegate.validation.rules.rule import Client
from sluicegate.validation.validated_request import Place

Failures = Mapping[Place, str]
"""The batches with bad records that were not stored, each with the reason."""


class QuotaTurn(NamedTuple):
    """Wait for this connection's turn in its client's quota."""


class TopicQuotaTurn(NamedTuple):
    """Wait until the topics of a request of `size` bytes are within their quotas."""

    shares: TopicShares
    size: int


class ResolveNames(NamedTuple):
    """Ask the broker, on this connection, for the names of unknown topic ids."""

    topic_ids: list[bytes]


class SettingsKnown(NamedTuple):
    """Wait until the cluster's settings of these topics are known, if they are read."""

    topics: Sequence[str]


class Validate(NamedTuple):
    """Validate a request on the event loop or in a thread. Results in a Dispatch; None if it was abandoned. Raises
    PreviousTimeInFlight and internal errors.
    """

    request: ProduceRequest
    client: Client | None


class EarlierResponses(NamedTuple):
    """Wait for the broker's responses to earlier requests, because this one needs their stored times."""


class AskBroker(NamedTuple):
    """Ask the broker about the partitions of bad records; `read` makes the result from its response. A malformed
    response is a protocol error of the broker.
    """

    parts: Parts
    correlation_id: int
    read: Callable[[bytearray], Any]


class Quarantined(NamedTuple):
    """Store bad records. Results in the batches that were not completely stored, each with the reason."""

    letters: Sequence[DeadLetters]


class ForwardAsItCame(NamedTuple):
    """Send the broker a request unchanged; `in_flight` None: it gets no response (acks=0)."""

    frame: bytearray
    in_flight: InFlightRequest | None


class Forward(NamedTuple):
    """Send the broker a changed request after `before` (complete frames), and await the responses to `in_flight`."""

    parts: Parts
    in_flight: Sequence[InFlightRequest]
    before: Parts = ()


class Respond(NamedTuple):
    """Send the client the proxy's own response in its turn."""

    in_flight: InFlightRequest


class CloseInTurn(NamedTuple):
    """Close the connection after the responses to all earlier requests; `reason` is for the trace."""

    reason: str
