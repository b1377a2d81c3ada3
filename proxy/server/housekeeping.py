"""Periodic work of a running proxy: checks of the cluster, of sessions and of the event loop."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import structlog

from sluicegate.config.model import Config
from sluicegate.proxy.cluster.discovery import Discovered, discover_cluster
from sluicegate.proxy.network.daemon_thread import in_daemon_thread
from sluicegate.proxy.network.listeners import Listeners
from sluicegate.proxy.network.tls.certificates import expired_for_clients
from sluicegate.proxy.network.tls.contexts import TlsContext
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.responses.broker_addresses import AddressBook
from sluicegate.proxy.server.assembly import Assembled
from sluicegate.proxy.server.clock import now_ms
from sluicegate.proxy.server.open_sessions import ConnectionStats
from sluicegate.proxy.session.lifecycle import Stage
from sluicegate.proxy.session.opening.loop_detection import LoopDetection
from sluicegate.proxy.session.session import Session
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status

_RETRY_SECONDS = 2.0
_LEADS_BACK = "upstream.bootstrap leads back to this proxy itself: name brokers there"


class ClusterWatch:
    """Updates the address book, the health and the counters."""

    def __init__(
        self,
        config: Config,
        broker_tls: TlsContext | None,
        book: AddressBook,
        listeners: Listeners,
        leading_back: LoopDetection,
        mark: int,
        parts: Assembled,
        status: Status,
        counters: Counters,
    ) -> None:
        """`mark` identifies this proxy's own requests."""
        self._config = config
        self._broker_tls = broker_tls
        self._book = book
        self._listeners = listeners
        self._leading_back = leading_back
        self._mark = mark
        self._parts = parts
        self._status = status
        self._counters = counters
        self._log = structlog.get_logger("sluicegate")

    @property
    def leads_back(self) -> str | None:
        """Return why the last check reached this proxy itself, and what to change; None if it did not."""
        listener = self._leading_back.listener
        return None if listener is None else f"{_LEADS_BACK} (listener {listener})"

    async def probe(self) -> None:
        """Check the cluster once."""
        self._leading_back.listener = None
        found = await discover_cluster(self._config.upstream, self._broker_tls, self._mark)
        self._found(found, await in_daemon_thread(self._expired))

    def _expired(self) -> str | None:
        return expired_for_clients(self._config, datetime.now(UTC))

    async def probe_again(self) -> None:
        """Wait, check the cluster again, and refresh topic settings."""
        is_ready = self._status.not_ready() is None
        await asyncio.sleep(self._config.upstream.refresh_seconds if is_ready else _RETRY_SECONDS)
        await self.probe()
        if self._parts.settings is not None:
            await self._parts.settings.refresh()

    def _found(self, found: Discovered, expired: str | None) -> None:
        for node_id, address in (found.brokers or {}).items():
            self._book.advertise(node_id, address.host, address.port)
        was_ready = self._counters.ready
        self._counters.ready = found.answered_by is not None
        self._counters.cluster_probes["success" if self._counters.ready else "failure"] += 1
        self._status.set(Condition.OWN_LOGIN_REJECTED, found.login_rejected)
        self._status.set(Condition.OWN_LOGIN_MISSING, self._missing_login(found))
        if found.needs_login is not None:
            self._parts.login.is_wanted = found.needs_login
        if found.login_rejected is not None:
            self._counters.upstream_logins_rejected += 1
            self._parts.log.proxy_login_rejected(found.login_rejected)
        unreachable = None
        if not self._counters.ready:
            reason = self.leads_back or str(found.reason)
            unreachable = f"no upstream broker answers: {reason}"
            self._parts.log.no_broker_reachable(reason)
        elif not was_ready:
            self._log.info("upstream answers", address=str(found.answered_by), brokers=self._book.node_ids)
        self._status.set(Condition.UPSTREAM_UNREACHABLE, unreachable)
        self._status.set(Condition.LISTENER_CLOSED, self._listeners.not_open)
        self._status.set(Condition.ROUTING_LOOP, self._a_broker_leads_back())
        self._status.set(Condition.CERTIFICATE_EXPIRED, expired)
        self._status.end(Condition.STARTING)

    def _missing_login(self, found: Discovered) -> str | None:
        if found.needs_login and self._config.upstream.sasl is None:
            return "the cluster requires a login, and upstream.sasl is not set: topic settings are not read"
        return None

    def _a_broker_leads_back(self) -> str | None:
        for node_id, address in self._book.looping_brokers.items():
            return (
                f"broker {node_id} is said to be at {address}, which is this proxy's own listener: correct "
                "upstream.brokers or the broker's advertised.listeners"
            )
        return None


_SWEEP_SECONDS = 2.0
# The interval at which sessions are checked, and the number of sessions that are checked in one loop iteration.
_CHECK_SECONDS = 1.0
_FLOW_SECONDS = 1.0
_CHECKS_AT_ONCE = 200
# The interval at which the delay of the event loop is measured.
_DELAY_SECONDS = 0.25


async def keep_on(step: Callable[[], Awaitable[None]]) -> None:
    """Repeat `step` forever; log its errors and continue."""
    while True:
        try:
            await step()
        except Exception as error:
            structlog.get_logger("sluicegate").error(
                "our fault: something that is done again and again failed", exc_info=error
            )
            await asyncio.sleep(_SWEEP_SECONDS)


class Housekeeping:
    """The periodic work of one proxy. Each method includes its own pause and is called again when it returns."""

    def __init__(
        self, parts: Assembled, status: Status, frame_timeout_seconds: float, connection_stats: ConnectionStats
    ) -> None:
        self._parts = parts
        self._connection_stats = connection_stats
        self._status = status
        self._check_seconds = min(_CHECK_SECONDS, frame_timeout_seconds / 4)

    async def sweep(self) -> None:
        """Write collected log lines and counts, and drop expired entries."""
        parts = self._parts
        self._status.beat()
        parts.observer.sweep()
        parts.log.sweep()
        parts.names.sweep(now_ms())
        if parts.traces is not None:
            parts.traces.sweep()
        await asyncio.sleep(_SWEEP_SECONDS)

    async def write_down_flow(self) -> None:
        """Record the traffic of the last second."""
        self._parts.view.tick(now_ms())
        await asyncio.sleep(_FLOW_SECONDS)

    async def check_sessions(self) -> None:
        """Check the deadlines of all sessions, and count their states."""
        await asyncio.sleep(self._check_seconds)
        sessions = list(self._parts.sessions)
        for first in range(0, len(sessions), _CHECKS_AT_ONCE):
            now = time.monotonic()
            for session in sessions[first : first + _CHECKS_AT_ONCE]:
                self._check(session, now)
            await asyncio.sleep(0)
        self._connection_stats.end_round()

    async def measure_delay(self) -> None:
        """Measure the delay of the event loop."""
        asked_at = time.monotonic()
        await asyncio.sleep(_DELAY_SECONDS)
        self._parts.counters.loop_delay.add(max(time.monotonic() - asked_at - _DELAY_SECONDS, 0.0))

    def _check(self, session: Session, now: float) -> None:
        try:
            session.check_deadlines(now)
            if session.stage is not Stage.ENDED:
                self._connection_stats.count(session)
        except Exception as error:  # an internal error; the other sessions are still checked
            session.on_internal_error(session.client, error)
