"""What sessions, their sides and their gates use of the proxy that they stand in; put together in one place
(`sluicegate.proxy.server.assembly`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from sluicegate.config.model import Limits
from sluicegate.protocol.frame_pool import FramePool
from sluicegate.proxy.responses.rewriting import AnswerRewriter
from sluicegate.proxy.responses.topic_names import TopicNames
from sluicegate.proxy.scheduling.scheduler import Judges
from sluicegate.proxy.session.admission import Admission, AllowedNames
from sluicegate.proxy.session.in_flight_room import InFlightRoom
from sluicegate.proxy.session.loop_detection import LoopDetection
from sluicegate.proxy.session.memory import GatherBudget
from sluicegate.proxy.session.outlets import Dial, Introduce, LoopCalls, Reached
from sluicegate.proxy.session.pacing import LoopTurn
from sluicegate.proxy.session.quarantining import DeadLetterSink
from sluicegate.proxy.session.quotas import Quotas
from sluicegate.proxy.session.reports import BeginTrace, Counts, Judgements, Lines, Register, Traces
from sluicegate.proxy.session.request_clock import RequestClock
from sluicegate.validation.in_force import RulesInForce
from sluicegate.validation.policy_memo import PolicyMemo

if TYPE_CHECKING:
    from sluicegate.proxy.fastpath.counts import LaneCounts
    from sluicegate.proxy.fastpath.memory import LaneRoom
    from sluicegate.validation.ordinary import OrdinaryRequests

from enum import Enum


class OnInternalError(Enum):
    """The operator's word: whether a fault of the proxy stops what it stands in front of."""

    CLOSE = "close"
    """The connection is closed, and the client tries again: nothing passes unjudged."""
    FORWARD = "forward"
    """The request goes on as it came."""


class Settings(Protocol):
    """Knows what topics are set to on the cluster."""

    def known_soon(self, topics: Iterable[str], /) -> Reached | None:
        """None when these topics can be judged now; else what to wait for, which ends in time and never fails."""


@dataclass(frozen=True, slots=True)
class ProduceDependencies:
    """What the gates of all sessions use. `ordinary` None: there are no fast lanes; `clock` times requests; `traces`
    None: nobody traces them; `from_thread` runs something on the event loop; `now_ms` is the proxy's clock; `settings`
    None: nobody asks for topics' settings; `dead_letters` None: nothing can be kept.
    """

    max_request_partitions: int
    max_request_records: int | None
    rules: RulesInForce
    policy_memo: PolicyMemo
    names: TopicNames
    settings: Settings | None
    judges: Judges
    ordinary: "OrdinaryRequests | None"
    rewriter: AnswerRewriter
    judgements: Judgements
    dead_letters: DeadLetterSink | None
    counts: Counts
    clock: RequestClock
    traces: Traces | None
    from_thread: Callable[..., Any]
    now_ms: Callable[[], int]
    on_internal_error: OnInternalError = OnInternalError.CLOSE


class ClusterLogin:
    """`is_wanted`: the cluster takes nothing from clients before they have logged in, as far as it is known."""

    def __init__(self) -> None:
        self.is_wanted = False


@dataclass(frozen=True, slots=True)
class RequestDependencies:
    """What the client's side of every session uses. `oauthbearer_claim`: `listen.sasl.oauthbearer.claim`."""

    budget: GatherBudget
    login: ClusterLogin
    rewriter: AnswerRewriter
    log: Lines
    produce: ProduceDependencies
    quotas: Quotas
    oauthbearer_claim: str | None = None


@dataclass(frozen=True, slots=True)
class SessionDependencies:
    """What all sessions of one proxy use. `connecting` begins connections to brokers, in the turn of an address;
    `why_lost` says of a broker's connection what has to be told of its end; `allowed_names` None: no certificate
    has to name its client; `lane_counts` and `lane_room` None: there are no fast lanes.
    """

    limits: Limits
    loop: LoopCalls
    turn: LoopTurn
    read_buffer: memoryview
    frames: FramePool
    connecting: Callable[[Callable[[], None], str], None]
    dial: Dial
    introduce_client: Introduce
    introduce_broker: Introduce
    why_lost: Callable[[Exception | None], str | None]
    admission: Admission
    in_flight: InFlightRoom
    allowed_names: AllowedNames | None
    loop_detection: LoopDetection
    register: Register
    log: Lines
    counts: Counts
    begin_trace: BeginTrace
    lane_counts: "LaneCounts | None"
    lane_room: "LaneRoom | None"
    requests: RequestDependencies
