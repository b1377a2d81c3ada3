"""Assembles a proxy, and passes each part its dependencies."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import random
from time import monotonic
from typing import TYPE_CHECKING, Any

from sluicegate.config.model import Config
from sluicegate.config.values.principal_mapping import PrincipalMapping
from sluicegate.protocol.frame_pool import FramePool
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.proxy.cluster.topic_settings import TopicSettingsReader
from sluicegate.proxy.fastpath.paths import make_fast_path_buffer, make_ordinary_requests, make_path_counts
from sluicegate.proxy.live.live_view import LiveView
from sluicegate.proxy.network.connection_limit import most_connections
from sluicegate.proxy.registry.waiting_records import WaitingRecords
from sluicegate.proxy.reporting.events.violation_event import EventNumbering
from sluicegate.proxy.reporting.events.violation_events import ViolationEvents
from sluicegate.proxy.reporting.events.violation_writer import SeveralSinks, ViolationSink
from sluicegate.proxy.reporting.logs.connection_trace import Tracing
from sluicegate.proxy.reporting.logs.session_log import SessionLog
from sluicegate.proxy.reporting.metrics.broker_errors import BrokerErrorCounts
from sluicegate.proxy.reporting.metrics.counters import Counters, RequestTimes
from sluicegate.proxy.reporting.metrics.topic_labels import TopicLabels, exact_names, topics_of_one
from sluicegate.proxy.reporting.metrics.validation_counts import ValidationCounts
from sluicegate.proxy.reporting.proxy_name import proxy_name
from sluicegate.proxy.reporting.write_health import WriteHealth
from sluicegate.proxy.responses.broker_addresses import AddressBook
from sluicegate.proxy.responses.dispatch import Dispatch, dispatch_of
from sluicegate.proxy.responses.log_starts import LogStarts
from sluicegate.proxy.responses.mock_cluster import MockClusterRewriter
from sluicegate.proxy.responses.rewriting import ResponseRewriter
from sluicegate.proxy.responses.topic_names import TopicNames
from sluicegate.proxy.scheduling.extraction import QuarantineMemory
from sluicegate.proxy.scheduling.scheduler import Scheduler
from sluicegate.proxy.scheduling.wait_budget import WaitBudget
from sluicegate.proxy.server.clock import now_ms
from sluicegate.proxy.server.observer import Observer
from sluicegate.proxy.server.open_sessions import OpenSessions
from sluicegate.proxy.session.client.claimed_principal import principal_sources_of
from sluicegate.proxy.session.handlers.dependencies import Dial, RequestDependencies, SessionDependencies
from sluicegate.proxy.session.in_flight_limit import InFlightLimit
from sluicegate.proxy.session.memory import GatherBudget, new_read_buffer
from sluicegate.proxy.session.opening.admission import Admission, AllowedNames
from sluicegate.proxy.session.opening.loop_detection import LoopDetection
from sluicegate.proxy.session.outlets import DescribePeer, LoopCalls, Timer
from sluicegate.proxy.session.pacing import LoopLateness, Pacer
from sluicegate.proxy.session.pass_through import ClusterLogin
from sluicegate.proxy.session.produce.dependencies import DeadLetterSink, OnInternalError, ProduceDependencies
from sluicegate.proxy.session.quotas.shares import Quotas
from sluicegate.proxy.session.request_clock import RequestClock
from sluicegate.proxy.session.topic_settings import TopicSettings
from sluicegate.proxy.telemetry.request_traces import RequestSummary, RequestTraces
from sluicegate.validation.from_keys import limits_of
from sluicegate.validation.in_force import PolicyMemo, RulesInForce
from sluicegate.validation.validated_request import ValidatedRequest

if TYPE_CHECKING:
    from sluicegate.validation.ordinary import OrdinaryRequests

# Each connect takes about half a millisecond of the loop's time, most of it in the next iterations.
_CONNECTS_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Runtime:
    """The proxy's environment: asyncio and the system in a process, or a script in a test.

    `call_soon`, `call_later` and `from_thread` are functions of an event loop. `now_ms` returns the time against which
    records are validated. `seconds` returns monotonic seconds. `why_lost` returns the reason to log for a broker's
    disconnect, if there is one. `make_settings` is None if topic settings are not read from the cluster. `dead_letters`
    is the destination of bad records, and `quarantine` contains the results of writing them. `waiting_records` contains
    the clients that wait for registries. `wait_budget` limits the waits of rules. `keep_trace` receives the traces of
    sampled requests; it is None without tracing. `topic_settings` contains the policies that are set as topic settings;
    it is None if the proxies share no state. `mock_advice` has the same meaning as in RequestDependencies. `chance`
    returns a random number from 0 to 1.
    """

    call_soon: Callable[..., Any]
    call_later: Callable[[float, Callable[[], None]], Timer]
    from_thread: Callable[..., Any]
    dial: Dial
    describe_client: DescribePeer
    describe_broker: DescribePeer
    why_lost: Callable[[Exception | None], str | None]
    make_settings: Callable[[RulesInForce], TopicSettingsReader] | None = None
    dead_letters: DeadLetterSink | None = None
    quarantine: WriteHealth = field(default_factory=WriteHealth)
    waiting_records: WaitingRecords = field(default_factory=WaitingRecords)
    wait_budget: WaitBudget | None = None
    keep_trace: Callable[[RequestSummary], None] | None = None
    topic_settings: TopicSettings | None = None
    mock_advice: str | None = None
    now_ms: Callable[[], int] = now_ms
    seconds: Callable[[], float] = monotonic
    chance: Callable[[], float] = random


@dataclass(frozen=True, slots=True)
class ProxyParts:
    """The parts of one proxy that other modules use. Its sessions are created from `dependencies`."""

    dependencies: SessionDependencies
    rules: RulesInForce
    names: TopicNames
    scheduler: Scheduler
    observer: Observer
    view: LiveView
    broker_errors: BrokerErrorCounts
    log: SessionLog
    counters: Counters
    sessions: OpenSessions
    login: ClusterLogin
    settings: TopicSettingsReader | None
    ordinary: "OrdinaryRequests | None"
    budget: GatherBudget
    quarantine_memory: QuarantineMemory


def assemble_proxy(
    config: Config,
    runtime: Runtime,
    rules: RulesInForce,
    counters: Counters,
    book: AddressBook,
    loop_detection: LoopDetection,
    violations: ViolationSink | None,
) -> ProxyParts:
    """Return the parts of one proxy. Opens no sockets or files, and starts no threads."""
    limits = config.limits
    names = TopicNames()
    lateness = LoopLateness(runtime.call_soon, runtime.seconds)
    pacer = Pacer(runtime.call_soon, lateness)
    connecting = Pacer(runtime.call_soon, lateness, _CONNECTS_AT_ONCE)
    ordinary = make_ordinary_requests(limits_of(config), limits.max_request_partitions, runtime.now_ms, rules)
    labels = TopicLabels(counters, names.is_known, exact_names(config), topics_of_one(config.workers))
    clock = RequestClock(runtime.seconds, RequestTimes(counters))
    log = SessionLog()

    def fast_path_failed(peer: str, error: Exception) -> None:
        counters.internal_errors["revalidated"] += 1
        log.revalidated(peer, error)

    path_counts = make_path_counts(clock, fast_path_failed)
    numbering = EventNumbering(proxy_name(config))
    view = LiveView(counters, ordinary, runtime.now_ms())
    counts = ValidationCounts(counters, labels, view, ordinary, path_counts, topics_of_one(config.workers))
    broker_errors = BrokerErrorCounts(counters, labels.folding, runtime.now_ms)
    sinks = view if violations is None else SeveralSinks([violations, view])
    observer = Observer(
        labels,
        counts,
        ViolationEvents(sinks, config.violations.max_records, numbering),
        (view, *_traces(config, runtime)),
        (view, runtime.waiting_records),
        runtime.quarantine,
        pacer.later,
        log,
        counters.internal_errors,
    )
    prepare = _prepare(runtime.now_ms)
    quarantine_memory = QuarantineMemory(limits.max_quarantined_bytes)
    scheduler = Scheduler(
        names.by_id,
        rules,
        limits_of(config),
        runtime.now_ms,
        prepare,
        runtime.call_soon,
        quarantine_memory,
        runtime.wait_budget,
        runtime.seconds,
        config.listen.legacy == "convert",
    )
    settings = runtime.make_settings(rules) if runtime.make_settings is not None else None
    rewriter = (ResponseRewriter if runtime.mock_advice is None else MockClusterRewriter)(book, names)
    sessions = OpenSessions(counters)
    login = ClusterLogin()
    produce = ProduceDependencies(
        max_request_partitions=limits.max_request_partitions,
        max_request_records=limits.max_request_records,
        rules=rules,
        policy_memo=PolicyMemo(),
        names=names,
        settings=settings,
        scheduler=scheduler,
        ordinary=ordinary,
        rewriter=rewriter,
        validations=observer,
        broker_errors=broker_errors,
        dead_letters=runtime.dead_letters,
        counts=counters,
        clock=clock,
        from_thread=runtime.from_thread,
        now_ms=runtime.now_ms,
        max_event_records=config.violations.max_records,
        topic_settings=runtime.topic_settings,
        own_topics=frozenset() if config.state is None else config.state.topics,
        on_internal_error=OnInternalError(config.on_internal_error),
    )
    budget = GatherBudget(limits.max_buffered_bytes, limits.max_frame_bytes, runtime.call_soon)
    dependencies = SessionDependencies(
        limits=limits,
        loop=LoopCalls(runtime.call_soon, runtime.call_later, pacer.later),
        lateness=lateness,
        read_buffer=new_read_buffer(),
        frames=FramePool(pacer.later),
        connecting=connecting.later,
        dial=runtime.dial,
        describe_client=runtime.describe_client,
        describe_broker=runtime.describe_broker,
        why_lost=runtime.why_lost,
        chance=runtime.chance,
        admission=Admission(most_connections(limits), limits.max_connections_per_address),
        in_flight=InFlightLimit(
            limits.max_in_flight_total, runtime.call_later, log.client_paused, counters.limits_reached
        ),
        allowed_names=_allowed_names(config),
        principal_mapping=_principal_mapping(config),
        loop_detection=loop_detection,
        register=sessions,
        log=log,
        counts=counters,
        begin_trace=Tracing(config.log).begin,
        path_counts=path_counts,
        fast_path_buffer=make_fast_path_buffer(budget.fast_path_bytes),
        requests=RequestDependencies(
            budget,
            login,
            rewriter,
            produce,
            Quotas(rules, runtime.seconds, runtime.call_later),
            principal_sources_of(config.listen),
            runtime.mock_advice,
        ),
    )
    return ProxyParts(
        dependencies,
        rules,
        names,
        scheduler,
        observer,
        view,
        broker_errors,
        log,
        counters,
        sessions,
        login,
        settings,
        ordinary,
        budget,
        quarantine_memory,
    )


def _allowed_names(config: Config) -> AllowedNames | None:
    tls = config.listen.tls
    return None if tls is None or not tls.allowed_names else AllowedNames(tls.allowed_names)


def _principal_mapping(config: Config) -> PrincipalMapping | None:
    rules = config.listen.principal_mapping_rules
    return None if rules is None else PrincipalMapping(rules)


def _traces(config: Config, runtime: Runtime) -> tuple[RequestTraces, ...]:
    if config.otel is None or runtime.keep_trace is None:
        return ()
    return (RequestTraces(config.otel.traces_per_second, runtime.keep_trace, runtime.seconds),)


def _prepare(now_ms: Callable[[], int]) -> Callable[[ProduceRequest, ValidatedRequest, Callable[[], None]], Dispatch]:
    log_starts = LogStarts()

    def prepare_dispatch(
        request: ProduceRequest, validated: ValidatedRequest, give_way: Callable[[], None]
    ) -> Dispatch:
        return dispatch_of(request, validated, log_starts, now_ms(), give_way)

    return prepare_dispatch
