"""The effects that the handlers of Produce requests and Produce responses yield, as values.

`sluicegate.proxy.session.produce.effect_performer` performs them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sluicegate.protocol.framing import Parts
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.proxy.responses.dispatch import DeadLetters, Dispatch
from sluicegate.proxy.responses.produce_responses import ClientError, PartitionKey
from sluicegate.proxy.session.effect import Effect
from sluicegate.proxy.session.in_flight import InFlightRequest
from sluicegate.proxy.session.produce.awaited_batches import AwaitedBatches
from sluicegate.proxy.session.produce.batch_outcome import RequestOutcome
from sluicegate.proxy.session.produce.stored_times import ExpectedTimes
from sluicegate.proxy.session.quotas.shares import TopicShares
from sluicegate.validation.rules.rule import Client
from sluicegate.validation.validated_request import Place

T = TypeVar("T")
Failures = Mapping[Place, str]
"""The batches whose bad records were not stored, each with the reason."""


@dataclass(frozen=True, slots=True)
class AwaitQuotaTurn(Effect[None]):
    """Wait for this connection's turn in its client's quota."""


@dataclass(frozen=True, slots=True)
class AwaitTopicQuotas(Effect[None]):
    """Wait until the topics of a request of `size` bytes are within their quotas."""

    shares: TopicShares
    size: int


@dataclass(frozen=True, slots=True)
class ResolveNames(Effect[None]):
    """Ask the broker, over this connection, for the names of unknown topic ids."""

    topic_ids: list[bytes]


@dataclass(frozen=True, slots=True)
class AwaitSettings(Effect[None]):
    """Wait until the cluster's settings for these topics are known. Do not wait if the proxy does not read settings."""

    topics: Sequence[str]


@dataclass(frozen=True, slots=True)
class Validate(Effect[Dispatch | None]):
    """Validate a request on the event loop or in a thread.

    The result is a Dispatch, or None if the validation was abandoned. Raises PreviousTimeInFlight and internal errors.
    """

    request: ProduceRequest
    client: Client | None


@dataclass(frozen=True, slots=True)
class AwaitEarlierResponses(Effect[None]):
    """Wait for the broker's responses to earlier requests.

    This request is validated against the times of the batches in those requests.
    """


@dataclass(frozen=True, slots=True)
class AskBroker(Effect[T]):
    """Ask the broker about the partitions of bad records.

    `read` creates the result from the broker's response. If the response is malformed, the broker has violated the
    protocol.
    """

    parts: Parts
    correlation_id: int
    read: Callable[[bytearray], T]


@dataclass(frozen=True, slots=True)
class StoreBadRecords(Effect[Failures]):
    """Store bad records. The result contains the batches that were not completely stored, each with the reason."""

    letters: Sequence[DeadLetters]


@dataclass(frozen=True, slots=True)
class ForwardAsItCame(Effect[None]):
    """Send the broker a request unchanged. `in_flight` is None if the request gets no response (acks=0)."""

    frame: bytearray
    in_flight: InFlightRequest | None


@dataclass(frozen=True, slots=True)
class Forward(Effect[None]):
    """Send the broker a changed request after the frames in `before`, and expect the responses to `in_flight`."""

    parts: Parts
    in_flight: Sequence[InFlightRequest]
    before: Parts = ()


@dataclass(frozen=True, slots=True)
class Respond(Effect[None]):
    """Send the client the proxy's own response in its turn."""

    in_flight: InFlightRequest


@dataclass(frozen=True, slots=True)
class CloseInTurn(Effect[None]):
    """Close the connection after the responses to all earlier requests. The trace contains `reason`."""

    reason: str


@dataclass(frozen=True, slots=True)
class CloseUnanswered(Effect[None]):
    """Count a rejection of which the client is not informed (acks=0), and close the connection in its turn."""


@dataclass(frozen=True, slots=True)
class ChargeRequest(Effect[None]):
    """Count a request of `size` bytes on the slow path, and charge it to its client's quota."""

    size: int


@dataclass(frozen=True, slots=True)
class ChargeTopics(Effect[None]):
    """Charge a request to the quotas of its topics."""

    shares: TopicShares


@dataclass(frozen=True, slots=True)
class TeachFastPath(Effect[None]):
    """Let later requests for the topics of a valid request use the fast path."""

    request: ProduceRequest


@dataclass(frozen=True, slots=True)
class ExpectResponse(Effect[InFlightRequest]):
    """Expect the broker's response to the request that is forwarded next.

    That response determines the outcome of `batches`. The result is the request in flight.
    """

    request: ProduceRequest
    correlation_id: int
    batches: AwaitedBatches
    dispatch: Dispatch


@dataclass(frozen=True, slots=True)
class ReportBrokerErrors(Effect[None]):
    """Report each error code in a broker's response once."""

    codes: frozenset[int]


@dataclass(frozen=True, slots=True)
class ReleaseMemory(Effect[None]):
    """Release `size` bytes that were kept for a response."""

    size: int


@dataclass(frozen=True, slots=True)
class LearnStoredTimes(Effect[None]):
    """Store the times of the batches that the broker has stored.

    `errors` contains the client's error for each partition.
    """

    times: ExpectedTimes
    errors: Mapping[PartitionKey, ClientError]


@dataclass(frozen=True, slots=True)
class Settle(Effect[None]):
    """Report the outcome of a request's batches."""

    outcome: RequestOutcome


@dataclass(frozen=True, slots=True)
class ReportNotStored(Effect[None]):
    """Report bad records that could not be written."""

    letters: DeadLetters
    reason: str


@dataclass(frozen=True, slots=True)
class ReportUnvalidated(Effect[None]):
    """Report an internal error that caused a request to be forwarded unvalidated."""

    error: BaseException


@dataclass(frozen=True, slots=True)
class TimeRequest(Effect[None]):
    """Time a request that was complete at `arrived` (s) and is forwarded now.

    `in_flight` is None if it gets no response.
    """

    arrived: float
    in_flight: InFlightRequest | None
