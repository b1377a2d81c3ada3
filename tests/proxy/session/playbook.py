"""Runs a scripted session: tests pass bytes in and inspect the output.

    play = Playbook()
    play.from_client(request)
    assert play.broker.sent == request

There is no socket, no event loop and no clock.
"""

import gc
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sluicegate.config.files.source import Source
from sluicegate.config.loading import load
from sluicegate.config.values.address import HostPort
from sluicegate.proxy.fastpath.paths import HAS_FAST_PATH
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.responses.broker_addresses import AddressBook
from sluicegate.proxy.server.assembly import ProxyParts, Runtime, assemble_proxy
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.handlers.arrival import Route
from sluicegate.proxy.session.handlers.dependencies import SessionDependencies
from sluicegate.proxy.session.handlers.session import Session
from sluicegate.proxy.session.opening.loop_detection import LoopDetection
from sluicegate.proxy.session.outlets import PeerInfo
from sluicegate.proxy.session.produce.dependencies import ProduceDependencies
from sluicegate.validation.from_keys import rulebook_of
from sluicegate.validation.in_force import RulesInForce

NOW = 1_800_000_000_000
_LEAST = {
    "SLUICEGATE__UPSTREAM__BOOTSTRAP": "['127.0.0.1:9']",
    "SLUICEGATE__UPSTREAM__TOPIC_SETTINGS": "false",  # a scripted session has no cluster
    "SLUICEGATE__LISTEN__BOOTSTRAP": "127.0.0.1:9",
}
_FULL_BYTES = 65_536
_ENDLESS = 10_000
_THREAD_SECONDS = 30.0
_OF_A_SESSION = frozenset(
    {
        "Session",
        "RequestHandler",
        "LoginHandler",
        "ProduceIntake",
        "ResponseHandler",
        "ProduceHandler",
        "Metering",
        "Connection",
        "FrameReader",
        "Gathering",
        "Delivery",
        "SessionCloser",
        "RequestRunner",
        "FastRequests",
        "FastResponses",
        "InFlightRequest",
        "ProduceRequest",
    }
)
_MARK = (1 << 31) - 1  # clients start with correlation id 0 or 1


def _nothing() -> None:
    pass


class Timer:
    """A call that is due after `seconds`."""

    def __init__(self, seconds: float, step: Callable[[], None]) -> None:
        self.seconds = seconds
        self.step = step
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True
        self.step = _nothing  # as an event loop drops the callback of a cancelled handle


class Steps:
    """An event loop that runs only when the test asks for it. `seconds`: its clock, which only the test changes."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._steps: deque[Callable[[], None]] = deque()
        self._from_thread = threading.Event()
        self.timers: list[Timer] = []

    def call_soon(self, step: Callable[..., Any], *arguments: Any) -> None:
        self._steps.append(partial(step, *arguments))

    def from_thread(self, step: Callable[..., Any], *arguments: Any) -> None:
        self._steps.append(partial(step, *arguments))
        self._from_thread.set()

    def call_later(self, seconds: float, step: Callable[[], None]) -> Timer:
        self.timers.append(Timer(seconds, step))
        return self.timers[-1]

    def turn(self) -> None:
        """Run the steps that are scheduled now, without those that they schedule."""
        for _ in range(len(self._steps)):
            self._steps.popleft()()

    def run_steps(self, most: int = _ENDLESS) -> None:
        """Run until no steps are left."""
        for _ in range(most):
            if not self._steps:
                return
            self.turn()

    def until(self, is_done: Callable[[], bool]) -> None:
        """Run until a condition that a thread changes is true."""
        while not is_done():
            if not self._steps:
                assert self._from_thread.wait(_THREAD_SECONDS), "no thread has responded"
                self._from_thread.clear()
            self.turn()

    def time_passes(self, seconds: float) -> None:
        """Run all timers that are due by then; cancelled ones are dropped."""
        due = [timer for timer in self.timers if timer.seconds <= seconds]
        self.timers = [timer for timer in self.timers if timer.seconds > seconds and not timer.is_cancelled]
        for timer in due:
            if not timer.is_cancelled:
                timer.step()
        self.run_steps()


class Outlet:
    """A peer that reads all bytes at once, or none while `stuck`; more than 64 KiB fill it, as with a socket."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._unsent: list[bytes | bytearray | memoryview] = []
        self.sent = bytearray()
        self.writes: list[int] = []
        self.stuck = False
        self.is_read = True
        self.closed = self.aborted = self.has_ended_writing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(len(data))
        if not self.stuck:
            self.sent += data
            return
        self._unsent.append(data)
        if self.get_write_buffer_size() > _FULL_BYTES and not self._connection.is_full:
            self._connection.pause_writing()

    def writelines(self, list_of_data: Sequence[bytes | bytearray | memoryview]) -> None:
        for data in list_of_data:
            self.write(data)

    def take_all(self) -> None:
        """Let the peer read again."""
        self.stuck = False
        for data in self._unsent:
            self.sent += data
        self._unsent.clear()
        if self._connection.is_full:
            self._connection.resume_writing()

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self._unsent))

    def is_closing(self) -> bool:
        return self.closed or self.aborted

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True

    def write_eof(self) -> None:
        self.has_ended_writing = True

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        if not self.aborted:
            self.aborted = True
            self._connection.connection_lost(None)


def proxy_in(runtime: Runtime, environment: dict[str, str]) -> ProxyParts:
    """Return the parts of a proxy; `environment` is its configuration."""
    config = load(Source("test"), _LEAST | environment).config
    book = AddressBook({}, lambda _: HostPort("h", 1))
    return assemble_proxy(
        config, runtime, RulesInForce(rulebook_of(config)), Counters(), book, LoopDetection(_MARK), None
    )


class Playbook:
    """One session: `client` and `broker` record what its two peers receive; `parts` belong to its proxy."""

    def __init__(
        self,
        has_fast_path: bool = HAS_FAST_PATH,
        change: Callable[[SessionDependencies], SessionDependencies] = lambda dependencies: dependencies,
        **environment: str,
    ) -> None:
        """`change` may replace dependencies of the session; `environment` is the configuration."""
        self.loop = Steps()
        self.failed: Callable[[Exception], None] | None = None
        self.broker_comes = True
        self.client_address = "192.0.2.1:5"
        runtime = Runtime(
            call_soon=self.loop.call_soon,
            call_later=self.loop.call_later,
            from_thread=self.loop.from_thread,
            dial=self._dialled,
            describe_client=lambda _: PeerInfo(self.client_address, "192.0.2.2:9092"),
            describe_broker=lambda _: PeerInfo("192.0.2.3:9092", "192.0.2.2:6"),
            why_lost=lambda _error: None,
            now_ms=lambda: NOW,
            seconds=lambda: self.loop.seconds,
        )
        self.parts = proxy_in(runtime, environment)
        dependencies = self.parts.dependencies
        if not has_fast_path:
            dependencies = replace_produce_dependencies(dependencies, ordinary=None)
        self.dependencies = change(dependencies)
        self.session, self.client = self.another_session()
        self.broker = Outlet(self.session.broker)
        self._not_read = b""
        self._has_begun = False

    def another_session(self) -> tuple[Session, Outlet]:
        """Return another session of the same proxy, and its client, which connects from `client_address`."""
        session = Session(self.dependencies, lambda _: Route("bootstrap", lambda _: ()))
        client = Outlet(session.client)
        session.client.connection_made(client)
        return session, client

    def _dialled(self, _addresses: object, _connection: object, failed: Callable[[Exception], None]) -> Timer:
        self.failed = failed
        return Timer(0, lambda: None)

    def from_client(self, data: bytes) -> None:
        """Send bytes from the client; bytes that a paused connection does not read stay with the client."""
        data = deliver_from_peer(self.session.client, self.client, self._not_read + data)
        if not self._has_begun:
            self._has_begun = True
            self.loop.run_steps(1)  # the broker is connected in this iteration
        if self.failed is not None and self.broker_comes and not self.client.is_closing():
            self.broker_comes = False
            self.session.broker.connection_made(self.broker)
            self.loop.run_steps(1)
            data = deliver_from_peer(self.session.client, self.client, data)
        self._not_read = data

    def ends(self) -> None:
        """End the session: no further response comes."""
        self.session.close_now()
        self.loop.run_steps()

    def from_broker(self, data: bytes) -> None:
        """Send bytes from the broker."""
        deliver_from_peer(self.session.broker, self.broker, data)


def objects_of_sessions() -> Counter[str]:
    """Count the session objects in this process, by kind. With the garbage collector disabled, these are all objects
    that still have a reference, even if only from each other.
    """
    kinds = (type(each) for each in gc.get_objects())
    return Counter(
        kind.__name__
        for kind in kinds
        if kind.__name__ in _OF_A_SESSION and str(kind.__module__).startswith("sluicegate.")
    )


def replace_produce_dependencies(dependencies: SessionDependencies, **changed: Any) -> SessionDependencies:
    """Return the dependencies with other values for Produce requests."""
    produce: ProduceDependencies = replace(dependencies.requests.produce, **changed)
    return replace(dependencies, requests=replace(dependencies.requests, produce=produce))


def deliver_from_peer(connection: Connection, outlet: Outlet, data: bytes) -> bytes:
    """Deliver bytes from a peer; return the unread ones."""
    while data and outlet.is_read and not outlet.is_closing():
        view = connection.get_buffer(-1)
        count = min(len(view), len(data))
        view[:count] = data[:count]
        del view
        connection.buffer_updated(count)
        data = data[count:]
    return data
