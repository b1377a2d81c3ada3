"""What the handler of a Produce request may want done (`sluicegate.proxy.session.produce.handler`), as values.

`sluicegate.proxy.session.produce.effect_performer` does it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sluicegate.protocol.framing import Parts
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.proxy.responses.dispatch import DeadLetters
from sluicegate.proxy.session.in_flight import InFlightRequest
from sluicegate.proxy.session.quotas.shares import TopicShares
from sluicegate.validation.produce import Place
from sluicegate.validation.rules.rule import Client

Failures = Mapping[Place, str]
"""The batches whose bad records were not all stored, each with the reason."""


class QuotaTurn(NamedTuple):
    """Wait for this connection's turn among those whose client owes something under a quota."""


class TopicQuotaTurn(NamedTuple):
    """Wait until the topics of a request of `size` bytes owe nothing under their quotas."""

    shares: TopicShares
    size: int


class ResolveNames(NamedTuple):
    """Ask the broker, on this connection, for the names of topic ids that are not known yet."""

    topic_ids: list[bytes]


class SettingsKnown(NamedTuple):
    """Wait until the cluster's settings of these topics are known, if they are being read."""

    topics: Sequence[str]


class Validate(NamedTuple):
    """Validate a request, on the event loop or in a thread. Results in a Dispatch; None if nobody wants it any more.
    Raises PreviousUnderWay, and errors of our own.
    """

    request: ProduceRequest
    client: Client | None


class EarlierResponses(NamedTuple):
    """Wait for the broker's responses to earlier requests whose stored times this one needs."""


class AskBroker(NamedTuple):
    """Send the broker a request of the proxy's own; `read` makes the result of its response. Raises nothing: a response
    that cannot be read is the broker's error.
    """

    parts: Parts
    correlation_id: int
    read: Callable[[bytearray], Any]


class Quarantined(NamedTuple):
    """Have bad records stored. Results in the batches of which something is not stored, each with the reason."""

    letters: Sequence[DeadLetters]


class ForwardAsItCame(NamedTuple):
    """Send the broker a request as it came; `in_flight` awaits the response, None: there will be none (acks=0)."""

    frame: bytearray
    in_flight: InFlightRequest | None


class Forward(NamedTuple):
    """Send the broker a request that was changed, after `question`, which is whole frames; `in_flight` await the
    responses.
    """

    parts: Parts
    in_flight: Sequence[InFlightRequest]
    question: Parts = ()


class Respond(NamedTuple):
    """Give the client the proxy's own response in its turn, or close the connection in that turn."""

    in_flight: InFlightRequest
