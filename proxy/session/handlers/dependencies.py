"""The dependencies of sessions and their handlers, which `sluicegate.proxy.server.assembly` provides."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from sluicegate.config.limits import Limits
from sluicegate.config.values.address import HostPort
from sluicegate.config.values.principal_mapping import PrincipalMapping
from sluicegate.protocol.frame_pool import FramePool
from sluicegate.proxy.responses.rewriting import ResponseRewriter
from sluicegate.proxy.session.client.claimed_principal import PrincipalSources
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.in_flight_limit import InFlightLimit
from sluicegate.proxy.session.memory import GatherBudget
from sluicegate.proxy.session.opening.admission import Admission, AllowedNames
from sluicegate.proxy.session.opening.loop_detection import LoopDetection
from sluicegate.proxy.session.outlets import DescribePeer, LoopCalls, Timer
from sluicegate.proxy.session.pacing import LoopLateness
from sluicegate.proxy.session.pass_through import ClusterLogin
from sluicegate.proxy.session.produce.dependencies import ProduceDependencies
from sluicegate.proxy.session.quotas.shares import Quotas
from sluicegate.proxy.session.reports import BeginTrace, SessionCounts, SessionLines, SessionRegister

if TYPE_CHECKING:
    from sluicegate.proxy.fastpath.fast_path import FastPathBuffer, PathCounts


class Dial(Protocol):
    """Connects a session to a broker."""

    def __call__(
        self, addresses: Sequence[HostPort], connection: Connection, failed: Callable[[Exception], None], /
    ) -> Timer:
        """Connect to the first address that responds, and return a timer that cancels the attempt.

        If no address responds, `failed` is called with UpstreamUnreachable. It may also be called with another error.
        """


@dataclass(frozen=True, slots=True)
class RequestDependencies:
    """The dependencies of all request handlers.

    `principals` describes how brokers derive principals from logins. `mock_advice` is the response to requests that a
    mock cluster does not support, or None for a real cluster.
    """

    budget: GatherBudget
    login: ClusterLogin
    rewriter: ResponseRewriter
    produce: ProduceDependencies
    quotas: Quotas
    principals: PrincipalSources
    mock_advice: str | None = None


@dataclass(frozen=True, slots=True)
class SessionDependencies:
    """The dependencies of all sessions of a proxy.

    `connecting` starts connections to brokers, in a fair order of client addresses. `why_lost` returns the reason to
    log for a broker's disconnect, if there is one. `chance` returns a random number from 0 to 1. If `allowed_names` is
    None, every certificate may connect. If `principal_mapping` is None, a certificate's subject is the principal. If
    `path_counts` and `fast_path_buffer` are None, there is no fast path.
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
    register: SessionRegister[Any]
    log: SessionLines
    counts: SessionCounts
    begin_trace: BeginTrace
    path_counts: "PathCounts | None"
    fast_path_buffer: "FastPathBuffer | None"
    requests: RequestDependencies
