"""The dependencies of Produce handlers, which `sluicegate.proxy.server.assembly` provides."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from sluicegate.proxy.responses.dispatch import DeadLetters
from sluicegate.proxy.responses.rewriting import ResponseRewriter
from sluicegate.proxy.responses.topic_names import TopicNames
from sluicegate.proxy.scheduling.background_thread import BackgroundThread
from sluicegate.proxy.scheduling.scheduler import Scheduler
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.outlets import CompletionFuture
from sluicegate.proxy.session.produce.batch_outcome import RequestOutcome
from sluicegate.proxy.session.produce.effects import Failures
from sluicegate.proxy.session.reports import BrokerErrorSink, SessionCounts
from sluicegate.proxy.session.request_clock import RequestClock
from sluicegate.proxy.session.topic_settings import TopicSettings
from sluicegate.validation.in_force import PolicyMemo, RulesInForce
from sluicegate.validation.outcome import Outcome

if TYPE_CHECKING:
    from sluicegate.validation.ordinary import OrdinaryRequests


class OnInternalError(Enum):
    """How to handle a request after an internal error in the proxy."""

    CLOSE = "close"
    """Close the connection, so that no request is forwarded unvalidated. The client retries."""
    FORWARD = "forward"
    """Forward the request unchanged."""


class Settings(Protocol):
    """The cluster's topic settings."""

    def settings_pending(self, topics: Iterable[str], /) -> CompletionFuture | None:
        """Return None if these topics can be validated now.

        Otherwise return a future that is done within a time limit and never fails.
        """


class DeadLetterSink(Protocol):
    """Stores bad records."""

    def write(
        self, identity: ClientIdentity, letters: Sequence[DeadLetters], report: Callable[[Failures], None]
    ) -> None:
        """Store records without blocking.

        `report` is called once, on the event loop, with the batches that were not completely stored.
        """


class Validations(Protocol):
    """Receives every batch's outcome. Never blocks and never fails."""

    def settled(self, request: RequestOutcome, /) -> None:
        """Called when the outcome of a Produce request on the slow path is known."""

    def not_accepted(self, client_id: str | None, holder: str, topic: str | None, outcome: Outcome, /) -> None:
        """Called when the broker has rejected a valid batch of the fast path. `holder` is explained
        at ClientDetails.
        """

    def not_quarantined(self, identity: ClientIdentity, letters: DeadLetters, reason: str, /) -> None:
        """Called when a batch's bad records were not stored and its client was told to retry."""


@dataclass(frozen=True, slots=True)
class ProduceDependencies:
    """The dependencies of all Produce handlers.

    If `ordinary` is None, there is no fast path. If `settings` is None, topic settings are not read. If `dead_letters`
    is None, there is no quarantine. `clock` times requests, and `now_ms` returns the proxy's time. `from_thread` runs a
    function on the event loop. `max_event_records` is the number of bad records listed in one event. `own_topics`
    contains the topics that only the proxies themselves may change. `topic_settings` contains the policies that are
    topic settings of the cluster; it is None if the proxies share no state. `background` does the work for requests
    about them.
    """

    max_request_partitions: int
    max_request_records: int | None
    rules: RulesInForce
    policy_memo: PolicyMemo
    names: TopicNames
    settings: Settings | None
    scheduler: Scheduler
    ordinary: "OrdinaryRequests | None"
    rewriter: ResponseRewriter
    validations: Validations
    broker_errors: BrokerErrorSink
    dead_letters: DeadLetterSink | None
    counts: SessionCounts
    clock: RequestClock
    from_thread: Callable[..., Any]
    now_ms: Callable[[], int]
    max_event_records: int
    own_topics: frozenset[str] = frozenset()
    topic_settings: TopicSettings | None = None
    on_internal_error: OnInternalError = OnInternalError.CLOSE
    background: BackgroundThread = field(default_factory=BackgroundThread)
