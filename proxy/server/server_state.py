"""A running proxy's state: counters and gauges for scrapes, and the live state for the web UI."""

import time
from time import process_time

from sluicegate.config.model import Config
from sluicegate.proxy.live.live_snapshot import Broker, LiveQuery, LiveSources, live_state
from sluicegate.proxy.live.live_state import LiveState
from sluicegate.proxy.reporting.logs.setup import log_lines_dropped
from sluicegate.proxy.reporting.metrics.counters import Snapshot
from sluicegate.proxy.reporting.metrics.topic_labels import owners_of
from sluicegate.proxy.reporting.proxy_name import proxy_name
from sluicegate.proxy.responses.broker_addresses import AddressBook
from sluicegate.proxy.server.assembly import ProxyParts
from sluicegate.proxy.server.broker_watch import ProbeResults
from sluicegate.proxy.server.clock import now_ms
from sluicegate.proxy.server.clock_watch import ClockWatch
from sluicegate.proxy.server.open_sessions import ConnectionStats
from sluicegate.proxy.status.condition import ServingState
from sluicegate.proxy.status.status import Status, gauges_of, state_of


class ServerState:
    """Reads the state of a running proxy's parts. Thread-safe.

    The housekeeping counts `connection_stats` in rounds. `config_generation` is the number of the configuration in
    force, starting at 1. `clock_watch` measures the offset of the cluster's clock; it is None if the offset is not
    measured.
    """

    def __init__(
        self, config: Config, parts: ProxyParts, book: AddressBook, probes: ProbeResults, status: Status
    ) -> None:
        """`probes` contains the state of each broker in `book`."""
        self.config_generation = 1
        self.clock_watch: ClockWatch | None = None
        self.connection_stats = ConnectionStats(
            parts.budget, parts.dependencies.fast_path_buffer, parts.quarantine_memory
        )
        self._listen = config.listen
        self._parts = parts
        self._book = book
        self._probes = probes
        self._status = status
        self._sources = LiveSources(
            proxy_name(config),
            lambda: probes.cluster_id,
            parts.view,
            parts.broker_errors,
            parts.sessions,
            parts.rules,
            config.upstream.bootstrap,
            self._brokers,
            status.active,
            now_ms,
        )

    def snapshot(self) -> Snapshot:
        """Return the current counters and gauges."""
        counters = self._parts.observer.counted()
        counters.log_lines_dropped = log_lines_dropped()
        counters.cpu_seconds = process_time()
        active = self._status.active()
        counters.ready = state_of(active) is not ServingState.NOT_SERVING
        return Snapshot(
            counters,
            self._parts.sessions.requests_in_flight(),
            config_generation=self.config_generation,
            gauges=self.connection_stats.gauges(),
            conditions=gauges_of(active),
            clock_offset_seconds=None if self.clock_watch is None else self.clock_watch.offset_seconds,
            topic_owners=owners_of(counters, self._parts.rules.rulebook),
            client_owners=self._parts.observer.client_owners(self._parts.rules.rulebook.in_file.client_owners),
        )

    def live_state(self, query: LiveQuery) -> LiveState:
        """Return the current state for the web UI."""
        return live_state(self._sources, query)

    def _brokers(self) -> list[Broker]:
        listen, book, now = self._listen, self._book, time.monotonic()
        return [
            (node_id, book.upstream_of(node_id), listen.address_of(node_id), self._probes.state_of(node_id, now))
            for node_id in book.node_ids
        ]
