"""What all sessions of one proxy share. Built once by the server; sessions only read it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sluicegate.config.model import Limits
from sluicegate.protocol.frame_pool import FramePool
from sluicegate.proxy.answers.rewriting import AnswerRewriter
from sluicegate.proxy.answers.topic_names import TopicNames
from sluicegate.proxy.cluster.topic_settings import TopicSettings
from sluicegate.proxy.judgement.judging import Judges
from sluicegate.proxy.network.pacing import LoopTurn, Pacer
from sluicegate.proxy.network.tls import AskedNames, TlsContext
from sluicegate.proxy.reporting.connection_trace import Tracing
from sluicegate.proxy.reporting.observer import Observer
from sluicegate.proxy.reporting.session_log import SessionLog
from sluicegate.proxy.reporting.tally import Tally
from sluicegate.proxy.session.admission import Admission
from sluicegate.proxy.session.leading_back import LeadingBack
from sluicegate.proxy.session.memory import GatherBudget
from sluicegate.validation.in_force import RulesInForce
from sluicegate.validation.policy_memo import PolicyMemo

if TYPE_CHECKING:
    from sluicegate.proxy.session.session import Session
    from sluicegate.validation.ordinary import OrdinaryRequests


@dataclass(slots=True)
class ProxyContext:
    """See the module. `call_soon` runs something on the event loop from a thread; `now_ms` is the proxy's clock.

    `connecting` is who begins connections to brokers, one after the other.
    `needs_login`: the cluster takes nothing from clients before they have logged in, as far as it is known.
    """

    limits: Limits
    connect_timeout_seconds: float
    upstream_tls: TlsContext | None
    asked_names: AskedNames
    rules: RulesInForce
    policy_memo: PolicyMemo
    topic_settings: TopicSettings | None
    rewriter: AnswerRewriter
    names: TopicNames
    budget: GatherBudget
    observer: Observer
    log: SessionLog
    tally: Tally
    judges: Judges
    ordinary: "OrdinaryRequests | None"
    call_soon: Callable[..., Any]
    now_ms: Callable[[], int]
    read_buffer: memoryview
    frames: FramePool
    admission: Admission
    leading_back: LeadingBack
    tracing: Tracing
    turn: LoopTurn
    pacer: Pacer
    connecting: Pacer
    needs_login: bool = False
    sessions: "set[Session]" = field(default_factory=set)
    _session_ended: asyncio.Event = field(default_factory=asyncio.Event)

    def ended(self, session: "Session") -> None:
        """A session is over."""
        if session in self.sessions:
            self.sessions.discard(session)
            self.tally.connections_closed += 1
            self._session_ended.set()

    def requests_in_flight(self) -> int:
        """Of all sessions together; may be asked from another thread."""
        return sum(len(session.queue) for session in list(self.sessions))

    async def all_ended(self) -> None:
        """Wait until no session is left."""
        while self.sessions:
            self._session_ended.clear()
            await self._session_ended.wait()
