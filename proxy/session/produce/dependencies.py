"""The dependencies of Produce handlers; `sluicegate.proxy.server.assembly` provides them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from sluicegate.proxy.responses.dispatch import DeadLetters
from sluicegate.proxy.responses.rewriting import ResponseRewriter
from sluicegate.proxy.responses.topic_names import TopicNames
from sluicegate.proxy.scheduling.scheduler import Scheduler
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.outlets import CompletionFuture
from sluicegate.proxy.session.produce.batch_outcome import RequestOutcome
from sluicegate.proxy.session.produce.effects import Failures
from sluicegate.proxy.session.reports import BrokerErrorSink, Counts
from sluicegate.proxy.session.request_clock import RequestClock
from sluicegate.validation.in_force import PolicyMemo, RulesInForce
from sluicegate.validation.outcome import Outcome

if TYPE_CHECKING:
    from sluicegate.validation.ordinary import OrdinaryRequests


class OnInternalError(Enum):
    """How to handle a request after an internal error of the proxy."""

    CLOSE = "close"
    """Close the connection, so that no request passes unvalidated; the client retries."""
    FORWARD = "forward"
    """Forward the request unchanged."""


class Settings(Protocol):
    """The topic settings of the cluster."""

    def settings_pending(self, topics: Iterable[str], /) -> CompletionFuture | None:
        """Return None if these topics can be validated now; otherwise a future that ends in time and never fails."""


class DeadLetterSink(Protocol):
    """Stores bad records."""

    def write(
        self, identity: ClientIdentity, letters: Sequence[DeadLetters], report: Callable[[Failures], None]
    ) -> None:
        """Store records and call `report` once, on the event loop, with the batches that were not completely stored.
        Never blocks.
        """


class Validations(Protocol):
    """Receives what became of every batch. Never waits, and never fails."""

    def settled(self, request: RequestOutcome, /) -> None:
        """The outcome of a Produce request of the slow path is known."""

    def not_accepted(self, client_id: str | None, holder: str, topic: str | None, outcome: Outcome, /) -> None:
        """The broker has rejected a valid batch of the fast path. `holder` as in ClientDetails."""

    def not_quarantined(self, identity: ClientIdentity, letters: DeadLetters, reason: str, /) -> None:
        """The bad records of a batch were not stored; its client was asked to retry."""


@dataclass(frozen=True, slots=True)
class ProduceDependencies:
    """The dependencies of all Produce handlers. `ordinary` None: there is no fast path; `clock` times requests;
    `from_thread` runs a function on the event loop; `now_ms` is the proxy's clock; `settings` None: topic settings are
    not read; `dead_letters` None: there is no quarantine; `max_event_records`: bad records listed in one event;
    `own_topics`: the topics that only the proxies themselves change.
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
    counts: Counts
    clock: RequestClock
    from_thread: Callable[..., Any]
    now_ms: Callable[[], int]
    max_event_records: int
    own_topics: frozenset[str] = frozenset()
    on_internal_error: OnInternalError = OnInternalError.CLOSE
