"""One running proxy: its listeners, sessions, cluster checks and admin endpoint, and how it drains."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import structlog

from sluicegate.config.files.source import Source
from sluicegate.config.loading import Loaded
from sluicegate.config.model import Config
from sluicegate.config.values.address import HostPort
from sluicegate.proxy.cluster.topic_settings import TopicSettingsReader
from sluicegate.proxy.cluster.topics import SettingsRead, read_settings_now
from sluicegate.proxy.live.live_snapshot import LiveQuery
from sluicegate.proxy.live.live_state import LiveState
from sluicegate.proxy.network.daemon_thread import in_daemon_thread
from sluicegate.proxy.network.introduction import ClientIntroduction, describe_broker
from sluicegate.proxy.network.listeners import Bind, CannotListen, bind
from sluicegate.proxy.network.native_sockets import native_sockets
from sluicegate.proxy.network.tls.contexts import BadTlsFiles, TlsContext, context_for_brokers
from sluicegate.proxy.network.upstream import Dialler, why_lost
from sluicegate.proxy.registry.waiting_records import WaitingRecords
from sluicegate.proxy.reload.enforcement import Enforcement
from sluicegate.proxy.reload.rule_makers import RuleMakers
from sluicegate.proxy.reload.topic_explanation import PolicyQuery
from sluicegate.proxy.reload.topic_policies import Configured
from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.build_info import SCAN_IS_COMPILED, VERSION
from sluicegate.proxy.reporting.events.violation_writer import ViolationSink
from sluicegate.proxy.reporting.logs.service_reports import SurveyReports
from sluicegate.proxy.reporting.metrics.counters import Counters, Snapshot
from sluicegate.proxy.reporting.metrics.topic_labels import exact_names
from sluicegate.proxy.scheduling.wait_budget import WaitBudget
from sluicegate.proxy.server.assembly import ProxyParts, Runtime, assemble_proxy
from sluicegate.proxy.server.broker_watch import BrokerWatch, ProbeResults
from sluicegate.proxy.server.clock import now_ms
from sluicegate.proxy.server.clock_watch import ClockWatch
from sluicegate.proxy.server.cluster_watch import ClusterWatch
from sluicegate.proxy.server.frontend import Frontend
from sluicegate.proxy.server.housekeeping import Housekeeping, repeat_forever
from sluicegate.proxy.server.registry_watch import RegistryWatch
from sluicegate.proxy.server.schema_watch import SchemaWatch
from sluicegate.proxy.server.server_state import ServerState
from sluicegate.proxy.server.settings_store import Commit, SettingsStore
from sluicegate.proxy.server.startup import CannotStart, Outputs, open_state, open_violations
from sluicegate.proxy.server.topic_policies import TopicPoliciesInForce
from sluicegate.proxy.session.opening.loop_detection import LoopDetection, new_mark
from sluicegate.proxy.state.settings_table import TopicValues
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status, Successes
from sluicegate.validation.from_keys import file_policies_of
from sluicegate.validation.in_force import RulesInForce
from sluicegate.validation.origins import NOWHERE
from sluicegate.validation.rulebook import Rulebook, SuspendedTopics
from sluicegate.validation.rules.rule import RuleUnusable

if TYPE_CHECKING:
    from sluicegate.proxy.admin.changes import Reload
    from sluicegate.proxy.admin.endpoint import AdminServer, FurtherPages


# Few objects become garbage in reference cycles, because sessions that end are dismantled. A full collection with
# thousands of sessions takes 50 ms, so it must be rare while clients connect.
_COLLECTED_AFTER = (5_000, 5, 100)


@dataclass(frozen=True, slots=True)
class _Started:
    """The objects that `start` creates."""

    parts: ProxyParts
    outputs: Outputs
    state: ServerState
    topics: TopicPoliciesInForce


class Server:
    """One proxy, which can be started and drained. Belongs to one event loop."""

    def __init__(
        self,
        config: Config,
        violations: ViolationSink | None = None,
        bind: Bind = bind,
        mark: int | None = None,
        policy_query: PolicyQuery | None = None,
        probes_brokers: bool = True,
        source: Source = NOWHERE,
        change_settings: Commit | None = None,
        settings: Mapping[str, TopicValues] = MappingProxyType({}),
        pages: "FurtherPages | None" = None,
        mock_advice: str | None = None,
    ) -> None:
        """`violations` receives the events instead of the configured sinks.

        `bind` creates the listening sockets. `mark` identifies the requests of a proxy with several processes.
        `policy_query` explains the policies in force. `probes_brokers` is true in the one process of a proxy that
        probes each broker and the cluster's clock. `source` maps the configuration's keys to their places, for use
        without `policy_query`. `change_settings` stores topic settings in a proxy with several processes, where another
        process reads the state; it is None if this process reads it. `settings` contains the topic settings at the
        start. `pages` contains additional pages of the admin endpoint. `mock_advice` is the response to requests that a
        mock cluster does not support, or None for a real cluster.
        """
        self._mock_advice = mock_advice
        self._pages: FurtherPages = {} if pages is None else pages
        self._source = source if policy_query is None else policy_query.loaded.source
        self._probes_brokers = probes_brokers
        self._probes = ProbeResults()
        self._policy_query = policy_query
        self._config = config
        self._violations = violations
        self._log = structlog.get_logger("sluicegate")
        self.counters = Counters()
        self.status = Status()
        self.reload: Reload | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._admin: AdminServer | None = None
        self._frontend = Frontend(config, bind, self.counters)
        self._listeners, self._book = self._frontend.listeners, self._frontend.book
        self._started: _Started | None = None
        self._mark = new_mark() if mark is None else mark
        self._leading_back = LoopDetection(self._mark)
        self._broker_tls: TlsContext | None = None
        self._wait_budget = WaitBudget()
        self._rule_makers = RuleMakers(self._wait_budget, self.counters, config.limits)
        self._waiting_records = WaitingRecords()
        self._schema_watch: SchemaWatch | None = None
        self._change_settings = change_settings
        self._settings_at_start = settings
        self._store = SettingsStore()

    @property
    def bootstrap_address(self) -> HostPort:
        """The address to use in clients' bootstrap.servers."""
        return self._listeners.bootstrap_address

    @property
    def admin_port(self) -> int | None:
        """The admin endpoint's port, or None if there is no endpoint."""
        return self._admin.port if self._admin is not None else None

    @property
    def _running(self) -> _Started:
        if self._started is None:
            raise RuntimeError("the proxy was not started")
        return self._started

    def check(self, loaded: Loaded) -> None:
        """Check another configuration's policies. Blocks. Raises ConfigError."""
        self._rule_makers.check(loaded)

    async def adopt(self, config: Config, source: Source = NOWHERE) -> None:
        """Put another configuration's policies in force. Its other keys require a restart. Raises RuleUnusable."""
        activate_policies = await self.compiled(config, source)
        activate_policies()

    async def compiled(self, config: Config, source: Source = NOWHERE) -> Callable[[], None]:
        """Compile another configuration's policies.

        Return a function that puts them in force. Raises RuleUnusable.
        """
        parts, state, topics = self._running.parts, self._running.state, self._running.topics
        configured = await in_daemon_thread(lambda: self._configured(config, source))
        of_topics = await topics.compile_all(configured)

        def activate_policies() -> None:
            topics.configure(configured, of_topics)
            if self._schema_watch is not None:
                self._schema_watch.configure(config)
            state.config_generation += 1
            parts.observer.configure(exact_names(config))

        return activate_policies

    def settings_read(self) -> None:
        """Respond to requests about topic settings from now on, because the settings in the state
        topic are in force.
        """
        self._running.topics.first_read.done()

    async def adopt_settings(self, changes: Mapping[str, TopicValues | None]) -> None:
        """Put changed topic settings of the cluster in force. None stands for a topic without settings."""
        await self._running.topics.adopt(changes)

    def suspend(self, suspended: SuspendedTopics) -> None:
        """Suspend enforcement for exactly these topics."""
        self._running.parts.rules.suspend(suspended)

    def _configured(self, config: Config, source: Source) -> Configured:
        """Compile a configuration. Read the rules' files unless `source` has read them. Raises RuleUnusable."""
        maker = self._rule_makers.for_registries(config.registries, source.schemas)
        return Configured(config, file_policies_of(config, maker, source), maker, source)

    def _query_of_policies(self) -> PolicyQuery:
        """Create an object that explains the policies in force, with the cluster's settings and current suspensions."""
        rules = self._running.parts.rules
        query = self._policy_query or PolicyQuery(Loaded(self._config, self._source, (), ()))
        query.read_settings, query.suspended = self._settings_of, lambda: rules.rulebook.suspended
        return query

    def _settings_of(self, topic: str) -> SettingsRead:
        """Return the cluster's settings that apply to `topic`, or will apply to its first batch. Blocks."""
        in_force = self._running.parts.rules.rulebook.settings_of(topic)
        read = SettingsRead(in_force) if in_force is not None else read_settings_now(self._config.upstream, topic)
        return replace(read, shared=self._running.topics.settings_of(topic))

    def snapshot(self) -> Snapshot:
        """Return the current counters and gauges. Thread-safe."""
        return self._running.state.snapshot()

    def successes(self) -> Successes:
        """Return when the last write succeeded, for each condition that a failed write sets. Thread-safe."""
        return {
            (condition, cut(destination)): succeeded_at
            for condition, health in self._running.outputs.writes.items()
            for destination, succeeded_at in health.succeeded_at().items()
        }

    def live_state(self, query: LiveQuery) -> LiveState:
        """Return the current state for the web UI. Thread-safe."""
        return self._running.state.live_state(query)

    async def start(self) -> None:
        """Open every port that is known at the start. Raises CannotStart."""
        config = self._config
        self._read_tls_files()
        try:
            parts, outputs, topics = self._assemble()
        except RuleUnusable as error:
            raise CannotStart(str(error)) from error
        state = ServerState(config, parts, self._book, self._probes, self.status)
        self._started = _Started(parts, outputs, state, topics)
        await topics.adopt(self._settings_at_start)
        topics.first_read.start()
        enforcement = Enforcement(self.status, self.suspend)
        try:
            self._open_ports(enforcement)
        except CannotListen as error:
            raise CannotStart(f"cannot listen on {error}; {error.advice}") from error
        cluster_watch = await self._probe_cluster()
        await self._listeners.started()
        outputs.push_metrics(config, state.snapshot)
        self._start_periodic_work(cluster_watch, enforcement)
        gc.collect()
        gc.freeze()  # these objects stay, so the collector need not visit them again
        gc.set_threshold(*_COLLECTED_AFTER)
        self._log_start()

    def _read_tls_files(self) -> None:
        """Read the certificates for clients and for brokers. Raises CannotStart."""
        try:
            self._frontend.read_certificate()
            if self._config.upstream.tls is not None:
                self._broker_tls = context_for_brokers(self._config.upstream.tls)
        except BadTlsFiles as error:
            raise CannotStart(str(error)) from error

    def _open_ports(self, enforcement: Enforcement) -> None:
        """Open the ports for clients, the shared state, and the admin endpoint. Raises CannotListen."""
        config, running = self._config, self._running
        self._listeners.open_bootstrap()
        query = self._query_of_policies()
        if self._change_settings is None:
            self._store.shared = open_state(
                config,
                enforcement,
                running.topics.adopt,
                running.topics.first_read.done,
                query,
                self.status,
                running.outputs.reports,
                running.state.snapshot,
            )
        if config.admin.listen is not None:
            from sluicegate.proxy.admin.opening import open_admin  # noqa: PLC0415  # workers have none

            self._admin = open_admin(
                config,
                running.state.snapshot,
                self.status,
                running.state.live_state,
                query,
                enforcement,
                self._store.shared,
                self.reload,
                self._pages,
            )
        for node_id in self._book.node_ids:
            self._listeners.offer(node_id)

    async def _probe_cluster(self) -> ClusterWatch:
        """Probe the cluster once. Raises CannotStart if its address leads back to this proxy."""
        watch = ClusterWatch(
            self._config,
            self._broker_tls,
            self._book,
            self._listeners,
            self._leading_back,
            self._mark,
            self._running.parts,
            self.status,
            self.counters,
            self._probes,
        )
        await watch.probe()
        if watch.loop_reason is not None:
            await self._listeners.close()
            await self._close()
            raise CannotStart(watch.loop_reason)
        return watch

    def _start_periodic_work(self, cluster_watch: ClusterWatch, enforcement: Enforcement) -> None:
        """Start a task for each step that is repeated until the proxy drains."""
        parts, outputs, state = self._running.parts, self._running.outputs, self._running.state
        housekeeping = Housekeeping(
            parts,
            self.status,
            self._config.limits.frame_timeout_seconds,
            state.connection_stats,
            outputs.writes,
            [context for context in (self._frontend.tls, self._broker_tls) if context is not None],
            enforcement,
        )
        steps = [cluster_watch.probe_again, *housekeeping.steps]
        if self._probes_brokers:
            steps += self._steps_of_one_process(parts, state)
        registries = RegistryWatch(self._rule_makers.registries, self._waiting_records, self.status, self._schema_watch)
        steps.append(registries.repeat_look_ups)
        self._tasks = [asyncio.get_running_loop().create_task(repeat_forever(step)) for step in steps]

    def _log_start(self) -> None:
        config = self._config
        self._log.info(
            "started",
            version=VERSION,
            scan="compiled" if SCAN_IS_COMPILED else "interpreted",
            bootstrap=str(self.bootstrap_address),
            upstream=[str(address) for address in config.upstream.bootstrap],
        )
        if config.exempt:
            self._log.warning(
                "some clients are exempt, so only the brokers validate their batches",
                exempt=[exempt.given for exempt in config.exempt],
            )

    def _steps_of_one_process(self, parts: ProxyParts, state: ServerState) -> list[Callable[[], Awaitable[None]]]:
        """Return the periodic work that one process of a proxy does for all workers."""
        config, status = self._config, self.status
        brokers = BrokerWatch(
            config.upstream, self._broker_tls, self._book, self._probes, self._mark, status, parts.log
        )
        state.clock_watch = ClockWatch(config.upstream, self._broker_tls, parts.login, self._mark, status, now_ms)
        self._schema_watch = SchemaWatch(config, status, SurveyReports(self.counters))
        return [brokers.probe_again, state.clock_watch.measure_again, self._schema_watch.repeat_look_ups]

    async def drain(self) -> None:
        """Stop accepting, wait at most `drain_timeout_seconds` for in-flight requests, then close everything."""
        parts = self._running.parts
        self.status.begin(Condition.DRAINING, "draining")
        self._log.info("draining", sessions=len(parts.sessions), seconds=self._config.drain_timeout_seconds)
        for task in self._tasks:
            task.cancel()
        await self._listeners.close()
        for session in parts.sessions:
            session.drain()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._config.drain_timeout_seconds):
                await parts.sessions.wait_until_all_ended()
        left = len(parts.sessions)
        for session in parts.sessions:
            session.close_now()
        await self._close()
        self._log.info("stopped", sessions_cut=left)

    async def _close(self) -> None:
        parts, outputs = self._running.parts, self._running.outputs
        if parts.settings is not None:
            parts.settings.close()
        parts.scheduler.close()
        self._running.topics.close()
        await asyncio.to_thread(self._rule_makers.close)
        await asyncio.to_thread(outputs.dead_letters.close)
        parts.log.flush()
        await asyncio.to_thread(parts.observer.close)
        await outputs.end_pushes()
        if self._store.shared is not None:
            await asyncio.to_thread(self._store.shared.close)
        if self._admin is not None:
            await asyncio.to_thread(self._admin.close)

    def _assemble(self) -> tuple[ProxyParts, Outputs, TopicPoliciesInForce]:
        config = self._config
        loop = asyncio.get_running_loop()
        sockets = native_sockets(loop)
        outputs = Outputs(config, self.counters, loop.call_soon_threadsafe)
        runtime = Runtime(
            call_soon=loop.call_soon,
            call_later=loop.call_later,
            from_thread=loop.call_soon_threadsafe,
            dial=Dialler(self._broker_tls, config.upstream.connect_timeout_seconds, sockets).dial,
            describe_client=ClientIntroduction(self._frontend.requested_names),
            describe_broker=describe_broker,
            why_lost=why_lost,
            make_settings=self._make_settings if config.upstream.topic_settings else None,
            dead_letters=outputs.dead_letters,
            quarantine=outputs.quarantine,
            waiting_records=self._waiting_records,
            wait_budget=self._wait_budget,
            keep_trace=outputs.keep_trace,
            mock_advice=self._mock_advice,
        )
        configured = self._configured(config, self._source)
        rules = RulesInForce(Rulebook(configured.file))
        topics = TopicPoliciesInForce(rules, configured, self.status, self._change_settings or self._store.commit)
        runtime = replace(runtime, topic_settings=None if config.state is None else topics)
        violations = self._violations
        if violations is None:
            violations = open_violations(config, self.counters, outputs.reports)
        parts = assemble_proxy(config, runtime, rules, self.counters, self._book, self._leading_back, violations)
        self._frontend.serve(parts, sockets)
        return parts, outputs, topics

    def _make_settings(self, rules: RulesInForce) -> TopicSettingsReader:
        return TopicSettingsReader(self._config.upstream, self._broker_tls, rules)
