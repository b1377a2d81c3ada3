"""The dependencies of sessions and their handlers; `sluicegate.proxy.server.assembly` provides them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from sluicegate.config.limits import Limits
from sluicegate.config.values.address import HostPort
from sluicegate.config.values.principal_mapping import PrincipalMapping
from sluicegate.protocol.frame_pool import FramePool
from sluicegate.proxy.responses.dispatch import DeadLetters
from sluicegate.proxy.responses.rewriting import ResponseRewriter
from sluicegate.proxy.responses.topic_names import TopicNames
from sluicegate.proxy.scheduling.scheduler import Scheduler
from sluicegate.proxy.session.client.claimed_principal import PrincipalSources
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.in_flight_limit import InFlightLimit
from sluicegate.proxy.session.memory import GatherBudget
from sluicegate.proxy.session.opening.admission import Admission, AllowedNames
from sluicegate.proxy.session.opening.loop_detection import LoopDetection
from sluicegate.proxy.session.outlets import CompletionFuture, DescribePeer, LoopCalls, Timer
from sluicegate.proxy.session.pacing import LoopLateness
from sluicegate.proxy.session.pass_through import ClusterLogin
from sluicegate.proxy.session.produce.effects import Failures
from sluicegate.proxy.session.quotas.shares import Quotas
from sluicegate.proxy.session.reports import BeginTrace, BrokerErrorSink, Counts, Lines, Register, Validations
from sluicegate.proxy.session.request_clock import RequestClock
from sluicegate.validation.in_force import PolicyMemo, RulesInForce

if TYPE_CHECKING:
    from sluicegate.proxy.fastpath.fast_path import FastPathBuffer, PathCounts
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


@dataclass(frozen=True, slots=True)
class ProduceDependencies:
    """The dependencies of all Produce handlers. `ordinary` None: there is no fast path; `clock` times requests;
    `from_thread` runs a function on the event loop; `now_ms` is the proxy's clock; `settings` None: topic settings are
    not read; `dead_letters` None: there is no quarantine; `max_event_records`: bad records listed in one event.
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
    on_internal_error: OnInternalError = OnInternalError.CLOSE


class Dial(Protocol):
    """Connects a session to a broker."""

    def __call__(
        self, addresses: Sequence[HostPort], connection: Connection, failed: Callable[[Exception], None], /
    ) -> Timer:
        """Connect to the first address that responds. `failed` gets UpstreamUnreachable if none does, or another error.
        The returned timer cancels the attempt.
        """


@dataclass(frozen=True, slots=True)
class RequestDependencies:
    """The dependencies of all request handlers. `principals`: how brokers derive principals from logins."""

    budget: GatherBudget
    login: ClusterLogin
    rewriter: ResponseRewriter
    produce: ProduceDependencies
    quotas: Quotas
    principals: PrincipalSources


@dataclass(frozen=True, slots=True)
class SessionDependencies:
    """The dependencies of all sessions of a proxy. `connecting` starts connections to brokers, fairly by address;
    `why_lost` returns the reason for a broker's disconnect, if it is logged; `chance` returns a number from 0 to 1;
    `allowed_names` None: every certificate may connect; `principal_mapping` None: a certificate's subject is the
    principal; `path_counts` and `fast_path_buffer` None: there is no fast path.
    """

    limits: Limits
    loop: LoopCalls
    lateness: LoopLateness
    read_buffer: memoryview
    frames: FramePool
    connecting: Callable[[Callable[[], None], str], None]
    dial: Dial
    describe_client: DescribePeer
    describe_broker: DescribePeer
    why_lost: Callable[[Exception | None], str | None]
    chance: Callable[[], float]
    admission: Admission
    in_flight: InFlightLimit
    allowed_names: AllowedNames | None
    principal_mapping: PrincipalMapping | None
    loop_detection: LoopDetection
    register: Register[Any]
    log: Lines
    counts: Counts
    begin_trace: BeginTrace
    path_counts: "PathCounts | None"
    fast_path_buffer: "FastPathBuffer | None"
    requests: RequestDependencies
