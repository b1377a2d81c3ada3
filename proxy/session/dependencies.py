"""What sessions and their handlers use of the proxy; `sluicegate.proxy.server.assembly` puts it together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from sluicegate.config.limits import Limits
from sluicegate.config.values.address import HostPort
from sluicegate.protocol.frame_pool import FramePool
from sluicegate.proxy.responses.rewriting import ResponseRewriter
from sluicegate.proxy.responses.topic_names import TopicNames
from sluicegate.proxy.scheduling.scheduler import Scheduler
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.in_flight_limit import InFlightLimit
from sluicegate.proxy.session.memory import GatherBudget
from sluicegate.proxy.session.opening.admission import Admission, AllowedNames
from sluicegate.proxy.session.opening.loop_detection import LoopDetection
from sluicegate.proxy.session.outlets import DescribePeer, LoopCalls, Timer
from sluicegate.proxy.session.pacing import LoopLateness
from sluicegate.proxy.session.pass_through import ClusterLogin
from sluicegate.proxy.session.produce.effect_performer import DeadLetterSink, Settings
from sluicegate.proxy.session.quotas.shares import Quotas
from sluicegate.proxy.session.reports import BeginTrace, Counts, Lines, Register, Validations
from sluicegate.proxy.session.request_clock import RequestClock, RequestTracer
from sluicegate.validation.in_force import PolicyMemo, RulesInForce

if TYPE_CHECKING:
    from sluicegate.proxy.fastpath.fast_path import FastPathBuffer, PathCounts
    from sluicegate.validation.ordinary import OrdinaryRequests


class OnInternalError(Enum):
    """The operator's word: whether a fault of the proxy stops what it stands in front of."""

    CLOSE = "close"
    """The connection is closed, and the client tries again: nothing passes unvalidated."""
    FORWARD = "forward"
    """The request goes on as it came."""


@dataclass(frozen=True, slots=True)
class ProduceDependencies:
    """What the handlers of Produce requests of all sessions use. `ordinary` None: there is no fast path; `clock` times
    requests; `traces` None: nobody traces them; `from_thread` runs something on the event loop; `now_ms` is the
    proxy's clock; `settings` None: nobody asks for topics' settings; `dead_letters` None: nothing can be kept.
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
    dead_letters: DeadLetterSink | None
    counts: Counts
    clock: RequestClock
    traces: RequestTracer | None
    from_thread: Callable[..., Any]
    now_ms: Callable[[], int]
    on_internal_error: OnInternalError = OnInternalError.CLOSE


class Dial(Protocol):
    """Connects a session to a broker."""

    def __call__(
        self, addresses: Sequence[HostPort], connection: Connection, failed: Callable[[Exception], None], /
    ) -> Timer:
        """Connect to the first address that answers. `failed` gets UpstreamUnreachable where none does, or what else
        went wrong; what is returned can be cancelled.
        """


@dataclass(frozen=True, slots=True)
class RequestDependencies:
    """What the request handlers of all sessions use. `oauthbearer_claim`: `listen.sasl.oauthbearer.sub.claim.name`."""

    budget: GatherBudget
    login: ClusterLogin
    rewriter: ResponseRewriter
    log: Lines
    produce: ProduceDependencies
    quotas: Quotas
    oauthbearer_claim: str | None = None


@dataclass(frozen=True, slots=True)
class SessionDependencies:
    """What all sessions of one proxy use. `connecting` begins connections to brokers, in the turn of an address;
    `why_lost` says of a broker's connection what has to be told of its end; `allowed_names` None: no certificate
    has to name its client; `path_counts` and `fast_path_buffer` None: there are no fast paths.
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
    admission: Admission
    in_flight: InFlightLimit
    allowed_names: AllowedNames | None
    loop_detection: LoopDetection
    register: Register[Any]
    log: Lines
    counts: Counts
    begin_trace: BeginTrace
    path_counts: "PathCounts | None"
    fast_path_buffer: "FastPathBuffer | None"
    requests: RequestDependencies
