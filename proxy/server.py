"""One running proxy: listeners, sessions, the look at the cluster, the admin endpoint, and a graceful end."""

import asyncio
import gc
import socket
from contextlib import suppress
from functools import partial
from pathlib import Path

import structlog

from config.address import HostPort
from config.model import Config
from protocol.frame_pool import FramePool
from proxy.addressing import AddressBook
from proxy.admin import AdminServer, Health
from proxy.build_info import SCAN_IS_COMPILED, VERSION
from proxy.clock import now_ms
from proxy.connection import new_shared_buffer
from proxy.context import ProxyContext
from proxy.discovery import Discovered, look_at_cluster
from proxy.judging import Judges
from proxy.listeners import BACKLOG, Acceptor, Bind, CannotListen, Listeners, bind
from proxy.log_starts import LogStarts
from proxy.memory import GatherBudget
from proxy.metrics import Snapshot, Tally, registry_of
from proxy.observer import Observer
from proxy.rewriting import AnswerRewriter
from proxy.session import Route, Session
from proxy.session_log import SessionLog
from proxy.tls import AskedNames, BadTlsFiles, TlsContext, context_for_brokers, context_for_clients
from proxy.tls_accepting import TlsAcceptor
from proxy.topic_names import TopicNames
from proxy.topic_settings import TopicSettings
from proxy.violations import ViolationFile, ViolationSink
from validation.policies import limits_of, policies_of

_SWEEP_SECONDS = 2.0
_RETRY_SECONDS = 2.0


class CannotStart(Exception):
    """The proxy cannot run; the text says what to change."""


class Server:
    """Start it, wait, drain it. All of it belongs to one event loop."""

    def __init__(self, config: Config, violations: ViolationSink | None = None, bind: Bind = bind) -> None:
        """`violations` takes the events instead of the configured file; `bind` makes the listening sockets."""
        self._config = config
        self._violations = violations
        self._log = structlog.get_logger("sluicegate")
        self.tally = Tally()
        self.health = Health()
        self._tasks: list[asyncio.Task[None]] = []
        self._admin: AdminServer | None = None
        self._listeners = Listeners(config.listen, self._accept, bind)
        self._book = AddressBook(config.upstream.brokers, self._listeners.offer)
        self._context: ProxyContext | None = None
        self._topic_settings: TopicSettings | None = None
        self._asked_names = AskedNames()
        self._client_tls: TlsContext | None = None
        self._broker_tls: TlsContext | None = None

    @property
    def bootstrap_address(self) -> HostPort:
        """Where clients may point bootstrap.servers."""
        return self._listeners.bootstrap_address

    @property
    def admin_port(self) -> int | None:
        """Where the admin endpoint really listens."""
        return self._admin.port if self._admin is not None else None

    @property
    def session_count(self) -> int:
        """Sessions that have not ended."""
        return len(self._context.sessions) if self._context is not None else 0

    def snapshot(self) -> Snapshot:
        """What the metrics show now; may be asked from another thread."""
        assert self._context is not None
        return Snapshot(self.tally, self._context.requests_in_flight())

    async def start(self) -> None:
        """Open every port that can be known now. Raises CannotStart."""
        config = self._config
        try:
            self._read_certificates()
        except BadTlsFiles as error:
            raise CannotStart(str(error)) from error
        self._context = self._new_context()
        try:
            self._listeners.open_bootstrap()
            if config.admin.listen is not None:
                self._admin = AdminServer(config.admin.listen, registry_of(self.snapshot), self.health)
        except CannotListen as error:
            raise CannotStart(f"cannot listen on {error}") from error
        for node_id in self._book.node_ids:
            self._listeners.offer(node_id)
        self._look_done(await self._look())
        await self._listeners.started()
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._keep_looking()), loop.create_task(self._keep_sweeping())]
        gc.collect()
        gc.freeze()  # what is here now stays: looking through it again and again would only cost time
        self._log.info(
            "started",
            version=VERSION,
            scan="compiled" if SCAN_IS_COMPILED else "interpreted",
            bootstrap=str(self.bootstrap_address),
            upstream=[str(address) for address in config.upstream.bootstrap],
        )

    async def drain(self) -> None:
        """Stop accepting, let what is in flight finish for at most `drain_seconds`, then close everything."""
        context = self._context
        assert context is not None
        self.health.not_ready = "draining"
        self._log.info("draining", sessions=len(context.sessions), seconds=self._config.drain_seconds)
        for task in self._tasks:
            task.cancel()
        await self._listeners.close()
        for session in list(context.sessions):
            session.drain()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._config.drain_seconds):
                await context.all_ended()
        left = len(context.sessions)
        for session in list(context.sessions):
            session.close_now()
        await self._close()
        self._log.info("stopped", sessions_cut=left)

    async def _close(self) -> None:
        assert self._context is not None
        self._context.judges.close()
        self._context.log.flush()
        await asyncio.to_thread(self._context.observer.close)
        if self._admin is not None:
            await asyncio.to_thread(self._admin.close)

    def _read_certificates(self) -> None:
        if self._config.listen.tls is not None:
            self._client_tls = context_for_clients(self._config.listen.tls, self._asked_names)
        if self._config.upstream.tls is not None:
            self._broker_tls = context_for_brokers(self._config.upstream.tls)

    def _new_context(self) -> ProxyContext:
        config = self._config
        names = TopicNames()
        policies = policies_of(config)
        if config.upstream.topic_settings:
            self._topic_settings = TopicSettings(config.upstream, self._broker_tls, policies)
        violations = self._open_violations()
        observer = Observer(self.tally, policies, names.by_id, violations, config.violations.max_records)
        return ProxyContext(
            limits=config.limits,
            connect_timeout_seconds=config.upstream.connect_timeout_seconds,
            upstream_tls=self._broker_tls,
            asked_names=self._asked_names,
            policies=policies,
            topic_settings=self._topic_settings,
            rewriter=AnswerRewriter(self._book, names),
            names=names,
            log_starts=LogStarts(),
            budget=GatherBudget(config.limits.max_gathered_bytes),
            observer=observer,
            log=SessionLog(),
            tally=self.tally,
            judges=Judges(names.by_id, policies.of, limits_of(config), now_ms),
            call_soon=asyncio.get_running_loop().call_soon_threadsafe,
            now_ms=now_ms,
            read_buffer=new_shared_buffer(),
            frames=FramePool(),
        )

    def _open_violations(self) -> ViolationSink | None:
        if self._violations is not None or self._config.violations.file is None:
            return self._violations
        path = Path(self._config.violations.file)
        try:
            return ViolationFile(path, self._config.violations.queue_size, self.tally)
        except OSError as error:
            raise CannotStart(f"violations.file {path} cannot be written: {error.strerror}") from error

    async def _accept(self, listener: int | None, listening: socket.socket) -> Acceptor:
        """Take the connections of a broker's listener, or of the bootstrap listener (None)."""
        context = self._context
        assert context is not None

        def new_session() -> asyncio.BaseProtocol:
            return Session(context, partial(self._route, listener)).client.protocol

        if self._client_tls is None:
            return await asyncio.get_running_loop().create_server(new_session, sock=listening, backlog=BACKLOG)
        label = "bootstrap" if listener is None else f"broker {listener}"
        return TlsAcceptor(listening, label, self._client_tls, new_session, context.log)

    def _route(self, listener: int | None, asked_name: str | None) -> Route:
        node_id = listener if listener is not None else self._listeners.node_named(asked_name)
        if node_id is None:
            return Route("bootstrap", self._config.upstream.bootstrap)
        address = self._book.upstream_of(node_id)
        return Route(f"broker {node_id}", (address,) if address is not None else ())

    # -- the cluster ---------------------------------------------------------------------------------------------

    async def _look(self) -> Discovered:
        return await look_at_cluster(self._config.upstream, self._broker_tls)

    def _look_done(self, found: Discovered) -> None:
        for node_id, address in (found.brokers or {}).items():
            self._book.advertise(node_id, address.host, address.port)
        was_ready = self.tally.ready
        self.tally.ready = found.answered_by is not None
        self.health.not_ready = None
        if not self.tally.ready:
            self.health.not_ready = f"no upstream broker answers: {found.reason}"
            assert self._context is not None
            self._context.log.upstream_silent(str(found.reason))
        elif not was_ready:
            self._log.info("upstream answers", address=str(found.answered_by), brokers=self._book.node_ids)
        if self.tally.ready and not self._listeners.all_open:
            self.health.not_ready = "a broker's port cannot be bound"

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(self._config.upstream.refresh_seconds if self.tally.ready else _RETRY_SECONDS)
            self._look_done(await self._look())
            if self._topic_settings is not None:
                await self._topic_settings.refresh()

    async def _keep_sweeping(self) -> None:
        assert self._context is not None
        while True:
            self.health.beat()
            self._context.observer.sweep()
            self._context.log.sweep()
            await asyncio.sleep(_SWEEP_SECONDS)
