"""Checks the cluster periodically: its brokers, whether one responds, and problems that affect clients."""

import asyncio
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
from sluicegate.proxy.session.opening.loop_detection import LoopDetection
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
