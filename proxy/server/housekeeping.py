"""A running proxy's periodic work: sessions, reports, traffic, certificates and the event loop's delay."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog

from sluicegate.proxy.network.daemon_thread import in_daemon_thread
from sluicegate.proxy.network.tls.contexts import TlsContext
from sluicegate.proxy.reload.enforcement import Enforcement
from sluicegate.proxy.reporting.write_health import WriteHealth
from sluicegate.proxy.server.assembly import ProxyParts
from sluicegate.proxy.server.clock import now_ms
from sluicegate.proxy.server.open_sessions import ConnectionStats
from sluicegate.proxy.server.unverified_clients import UnverifiedClients
from sluicegate.proxy.session.handlers.session import Session
from sluicegate.proxy.session.lifecycle import Stage
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status

_SWEEP_SECONDS = 2.0
# The interval between checks of all sessions. One loop iteration checks at most _CHECKS_AT_ONCE sessions.
_CHECK_SECONDS = 1.0
_FLOW_SECONDS = 1.0
_CHECKS_AT_ONCE = 200
# The interval between measurements of the event loop's delay.
_DELAY_SECONDS = 0.25
# The interval between checks for changed certificates.
_CERTIFICATES_SECONDS = 1.0
# The interval between checks of the end times of suspensions.
_SUSPENSIONS_SECONDS = 1.0

Step = Callable[[], Awaitable[None]]
"""Periodic work, which is called again when it returns. It includes its own pause."""


async def repeat_forever(step: Step) -> None:
    """Repeat `step` forever. Log its errors."""
    while True:
        try:
            await step()
        except Exception as error:
            structlog.get_logger("sluicegate").error("internal error: a periodic task failed", exc_info=error)
            await asyncio.sleep(_SWEEP_SECONDS)


def report_failing(status: Status, condition: Condition, health: WriteHealth) -> None:
    """Set the condition for each destination to which writes fail, and clear it for all others."""
    failing = health.failing()
    for destination, each in failing.items():
        detail = f"{destination}: {each.reason}"
        status.begin(condition, detail, destination, each.waiting, each.failed_at)
    status.end_others(condition, failing)


class Housekeeping:
    """One proxy's periodic work, in `steps`."""

    def __init__(
        self,
        parts: ProxyParts,
        status: Status,
        frame_timeout_seconds: float,
        connection_stats: ConnectionStats,
        writes: Mapping[Condition, WriteHealth],
        certificates: Sequence[TlsContext],
        enforcement: Enforcement,
    ) -> None:
        """`writes` contains the results of writes, by the condition that is active while those writes fail.

        `enforcement` contains the suspensions that may end.
        """
        self._writes = writes
        self._parts = parts
        self._connection_stats = connection_stats
        self._unverified_clients = UnverifiedClients(status, parts.rules)
        self._status = status
        self._check_seconds = min(_CHECK_SECONDS, frame_timeout_seconds / 4)
        self._certificates = certificates
        self._enforcement = enforcement

    @property
    def steps(self) -> list[Step]:
        """All periodic work."""
        steps: list[Step] = [
            self._sweep,
            self._check_sessions,
            self._measure_delay,
            self._write_down_flow,
            self._end_suspensions,
        ]
        if self._certificates:
            steps.append(self._follow_certificates)
        return steps

    async def _sweep(self) -> None:
        """Write pending log lines and counts, and drop expired entries."""
        parts = self._parts
        self._status.beat()
        for condition, health in self._writes.items():
            report_failing(self._status, condition, health)
        parts.observer.sweep()
        parts.log.sweep()
        parts.names.sweep(now_ms())
        await asyncio.sleep(_SWEEP_SECONDS)

    async def _write_down_flow(self) -> None:
        """Record the traffic of the last second."""
        self._parts.observer.settle_traffic()
        self._parts.view.tick(now_ms())
        await asyncio.sleep(_FLOW_SECONDS)

    async def _check_sessions(self) -> None:
        """Check the deadlines of all sessions, and count their states."""
        await asyncio.sleep(self._check_seconds)
        sessions = list(self._parts.sessions)
        for first in range(0, len(sessions), _CHECKS_AT_ONCE):
            now = time.monotonic()
            for session in sessions[first : first + _CHECKS_AT_ONCE]:
                self._check(session, now)
            await asyncio.sleep(0)
        self._connection_stats.end_round()
        self._unverified_clients.end_round()

    async def _measure_delay(self) -> None:
        """Measure how late the event loop runs a timer."""
        asked_at = time.monotonic()
        await asyncio.sleep(_DELAY_SECONDS)
        self._parts.counters.loop_delay.add(max(time.monotonic() - asked_at - _DELAY_SECONDS, 0.0))

    async def _follow_certificates(self) -> None:
        """Use certificates that were renewed on disk for new connections."""
        await asyncio.sleep(_CERTIFICATES_SECONDS)
        for context in self._certificates:
            await in_daemon_thread(context.follow)

    async def _end_suspensions(self) -> None:
        """End the suspensions whose end time has passed."""
        await asyncio.sleep(_SUSPENSIONS_SECONDS)
        self._enforcement.end_due()

    def _check(self, session: Session, now: float) -> None:
        try:
            session.check_deadlines(now)
            if session.stage is not Stage.ENDED:
                self._connection_stats.count(session)
                self._unverified_clients.count(session)
        except Exception as error:  # an internal error must not prevent the check of other sessions
            session.on_internal_error(session.client, error)
