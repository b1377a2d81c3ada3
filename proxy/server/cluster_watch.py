"""Checks the cluster every few seconds: brokers' addresses, the proxy's own login, loops and readiness."""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import structlog

from sluicegate.config.model import Config
from sluicegate.proxy.cluster.discovery import DiscoveryResult, discover_cluster
from sluicegate.proxy.network.daemon_thread import in_daemon_thread
from sluicegate.proxy.network.listeners import Listeners
from sluicegate.proxy.network.tls.certificates import OwnExpiries, own_expiries
from sluicegate.proxy.network.tls.contexts import TlsContext
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.responses.broker_addresses import AddressBook
from sluicegate.proxy.server.assembly import ProxyParts
from sluicegate.proxy.server.broker_watch import ProbeResults
from sluicegate.proxy.session.opening.loop_detection import LoopDetection
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status

# Including the time for the check and for a worker's report (1 s), a cluster that lists no broker is reported within 5
# s.
_PROBE_SECONDS = 3.0
_RETRY_SECONDS = 2.0
_TIMER_SECONDS = 0.05  # timers may fire early
_LOGIN_MISSING = "the cluster requires a login, and upstream.sasl is not set: topic settings are not read"
_LEADS_BACK = "upstream.bootstrap leads back to this proxy itself: use the brokers' own addresses there"


class ClusterWatch:
    """Updates the address book, the health and the counters after each check of the cluster."""

    def __init__(
        self,
        config: Config,
        broker_tls: TlsContext | None,
        book: AddressBook,
        listeners: Listeners,
        leading_back: LoopDetection,
        mark: int,
        parts: ProxyParts,
        status: Status,
        counters: Counters,
        probes: ProbeResults,
    ) -> None:
        """`mark` is the correlation id that identifies this proxy's own requests.

        `probes` records which brokers the cluster lists.
        """
        self._probes = probes
        self._refreshed_at = time.monotonic()
        self._config = config
        self._broker_tls = broker_tls
        self._book = book
        self._listeners = listeners
        self._leading_back = leading_back
        self._mark = mark
        self._parts = parts
        self._status = status
        self._counters = counters
        self._responds = False
        self._is_login_rejected = False
        self._log = structlog.get_logger("sluicegate")

    @property
    def loop_reason(self) -> str | None:
        """Why the last check reached this proxy itself, with advice. None if it reached the cluster."""
        listener = self._leading_back.listener
        return None if listener is None else f"{_LEADS_BACK} (listener {listener})"

    async def probe(self, asks_brokers: bool = True) -> None:
        """Check the cluster once. If `asks_brokers` is false, only check whether a broker responds."""
        self._leading_back.listener = None
        found = await discover_cluster(self._config.upstream, self._broker_tls, self._mark, asks_brokers)
        self._found(found)
        expiries = await in_daemon_thread(self._expiries)  # reading files may take seconds
        self._status.set(Condition.CERTIFICATE_EXPIRED, expiries.expired)
        self._status.set_all(Condition.CERTIFICATE_EXPIRES_SOON, expiries.soon)
        self._status.end(Condition.STARTING)

    def _expiries(self) -> OwnExpiries:
        return own_expiries(self._config, datetime.now(UTC))

    async def probe_again(self) -> None:
        """Wait, check the cluster again, and refresh topic settings if they are due."""
        is_ready = self._status.not_ready() is None
        refresh_seconds = self._config.upstream.refresh_seconds
        await asyncio.sleep(min(refresh_seconds, _PROBE_SECONDS) if is_ready else _RETRY_SECONDS)
        is_due = not is_ready or time.monotonic() - self._refreshed_at >= refresh_seconds - _TIMER_SECONDS
        # A broker logs each request that is sent before a login.
        await self.probe(asks_brokers=is_due or not self._lacks_login)
        if is_due:
            self._refreshed_at = time.monotonic()
            if self._parts.settings is not None:
                await self._parts.settings.refresh()

    def _found(self, found: DiscoveryResult) -> None:
        if found.brokers is not None:
            self._listeners.repeat_look_ups()
        for node_id, address in (found.brokers or {}).items():
            self._book.advertise(node_id, address.host, address.port)
        responded, self._responds = self._responds, found.answered_by is not None
        self._counters.cluster_probes["success" if self._responds else "failure"] += 1
        if found.login_rejected is None and self._is_login_rejected:
            self._parts.log.proxy_login_accepted()
        self._is_login_rejected = found.login_rejected is not None
        self._status.set(Condition.PROXY_LOGIN_REJECTED, found.login_rejected)
        if found.needs_login is not None:
            self._parts.login.is_wanted = found.needs_login
        self._status.set(Condition.PROXY_LOGIN_MISSING, _LOGIN_MISSING if self._lacks_login else None)
        self._probes.cluster_id = found.cluster_id or self._probes.cluster_id
        self._probes.listed(None if found.brokers is None else frozenset(found.brokers))
        if found.login_rejected is not None:
            self._counters.upstream_logins_rejected += 1
            self._parts.log.proxy_login_rejected(found.login_rejected)
        unreachable = no_broker = none_listed = None
        if not self._responds:
            reason = self.loop_reason or str(found.reason)
            if found.is_no_broker and self.loop_reason is None:
                no_broker = f"upstream is not a Kafka broker: {reason}"
            else:
                unreachable = f"no upstream broker responds: {reason}"
            self._parts.log.no_broker_reachable(reason)
        elif found.brokers == {}:
            none_listed = f"{found.answered_by} responds, but lists no broker: check the cluster's controllers"
        if self._responds and not responded:
            self._parts.log.upstream_responds()
            self._log.info("upstream responds", address=str(found.answered_by), brokers=self._book.node_ids)
        addresses = ", ".join(map(str, self._config.upstream.bootstrap))
        details = {
            Condition.UPSTREAM_UNREACHABLE: unreachable,
            Condition.UPSTREAM_NOT_A_BROKER: no_broker,
            Condition.NO_BROKER_LISTED: none_listed,
        }
        self._status.exchange({each: {} if words is None else {addresses: words} for each, words in details.items()})
        self._closed_ports(self._book.node_ids if found.brokers is None else sorted(found.brokers))
        self._status.set(Condition.ROUTING_LOOP, self._a_broker_leads_back())

    def _closed_ports(self, node_ids: Sequence[int]) -> None:
        """Report the cluster's brokers that have no port for clients.

        Clients are served as long as one broker has a port.
        """
        closed = {f"broker {node_id}": reason for node_id, reason in self._listeners.without_port(node_ids).items()}
        details = {broker: f"{broker}: {reason}" for broker, reason in closed.items()}
        all_closed = None
        if details and len(details) == len(node_ids):
            first, *others = details.values()
            all_closed = f"no broker has a port for clients: {first}" + (f", and {len(others)} more" if others else "")
        self._status.exchange(
            {
                Condition.LISTENER_CLOSED: {} if all_closed is None else {"": all_closed},
                Condition.BROKER_PORT_CLOSED: {} if all_closed else details,
            }
        )

    @property
    def _lacks_login(self) -> bool:
        """Whether the cluster requires a login and no login is configured."""
        return self._parts.login.is_wanted and self._config.upstream.sasl is None

    def _a_broker_leads_back(self) -> str | None:
        for node_id, address in self._book.looping_brokers.items():
            return (
                f"the cluster lists broker {node_id} at {address}, which is this proxy's own listener: correct "
                "upstream.brokers or the broker's advertised.listeners"
            )
        return None
