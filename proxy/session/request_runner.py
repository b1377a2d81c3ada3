"""Runs the handlers of one connection's requests: generators that yield what they want done, and know no I/O.

A handler that has to wait (for topic names, a thread, a dead-letter topic) yields; the runner pauses the client, so
that nothing overtakes the request, and resumes both when the result is there. One guard is around all of it: an error
of our own closes the connection with a log line, so that no client waits for ever. How long a request may wait is a
deadline of its connection (`sluicegate.proxy.session.deadlines`), which looks at `busy_with`.
"""

from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Protocol, TypeVar

from sluicegate.protocol.errors import SenderError
from sluicegate.protocol.framing import Parts
from sluicegate.proxy.session.in_flight import Finish
from sluicegate.proxy.session.pause_reason import Pausable, PauseReason

T = TypeVar("T")
Steps = Generator[Any, Any, T]
"""A handler: it yields effects and is sent their results."""


class Resume(Protocol):
    """Continues a handler with a result, or raises an error where it waits. A second call does nothing."""

    def __call__(self, value: Any, error: BaseException | None = None, /) -> None: ...


class Wait:
    """A result that comes later. The client is paused for `reason` meanwhile."""

    def __init__(self, reason: PauseReason, ask: Callable[[Resume], object]) -> None:
        self.reason = reason
        self._ask = ask

    def ask(self, resume: Resume) -> None:
        """Begin what leads to the result, and call `resume` with it once, on the event loop."""
        self._ask(resume)

    def abandon(self) -> None:
        """Nobody wants the result any more."""


class AwaitedResponse:
    """The broker's response to a request that `forward` sends. The client is not paused: requests may follow, and their
    responses are read in turn. The handler returns what the client gets.
    """

    def __init__(self, forward: Callable[[Finish], None]) -> None:
        self.forward = forward


Perform = Callable[[Any], Any]
"""Does what a handler yields. Returns the result, a Wait or an AwaitedResponse; errors are raised in the handler."""


class PausedClient(Pausable, Protocol):
    """The connection that is paused while its request waits."""

    def abort(self) -> None: ...


class AwaitedBroker(Protocol):
    """The connection without which a request has nowhere to go."""

    @property
    def closed(self) -> bool: ...

    def abort(self) -> None: ...


class RequestRunner:
    """Of one session, whose requests are handled one at a time. `report` logs an error of our own; `reject` ends the
    session because of a malformed request; `settled` is called when a request that waited has been dealt with, or waits
    for something else.
    """

    def __init__(
        self,
        client: PausedClient,
        broker: AwaitedBroker,
        report: Callable[[BaseException], None],
        reject: Callable[[SenderError], None],
        settled: Callable[[], None],
    ) -> None:
        self._client = client
        self._broker = broker
        self._report = report
        self._reject = reject
        self._settled = settled
        self._wait: Wait | None = None
        self._requests = 0

    @property
    def _waits_for(self) -> PauseReason | None:
        return None if self._wait is None else self._wait.reason

    @property
    def is_busy(self) -> bool:
        """Whether a request waits for something."""
        return self._wait is not None

    @property
    def busy_with(self) -> int | None:
        """The number of the request that waits; None: none does, or one waits for its turn under a quota."""
        return self._requests if self._waits_for not in (None, PauseReason.QUOTA_TURN) else None

    def run(self, steps: Steps[Any], perform: Perform) -> None:
        """Run a handler as far as it gets. Raises what it raises before its first wait."""
        self._requests += 1
        self._drive(steps, perform)

    def _drive(
        self, steps: Steps[Any], perform: Perform, value: Any = None, error: BaseException | None = None
    ) -> None:
        while True:
            try:
                effect = steps.send(value) if error is None else steps.throw(error)
            except StopIteration:
                return
            finally:
                error = None  # its traceback has this frame
            try:
                value = perform(effect)
            except Exception as raised:
                error = raised
                continue
            if isinstance(value, Wait):
                self._wait = value
                self._client.pause(value.reason)
                value.ask(partial(self._resume, steps, perform, value))
                return
            if isinstance(value, AwaitedResponse):
                value.forward(partial(_respond, steps))
                return

    def _resume(
        self, steps: Steps[Any], perform: Perform, wait: Wait, value: Any, error: BaseException | None = None
    ) -> None:
        """The handler is not continued if the broker has gone meanwhile."""
        if self._wait is not wait:
            return
        try:
            self._wait = None
            if not self._broker.closed:
                self._drive(steps, perform, value, error)
            self._settled()
            if self._waits_for is not wait.reason:
                self._client.resume(wait.reason)
        except SenderError as error_of_client:
            self._reject(error_of_client)
        except BaseException as raised:
            self.fail(raised)
            if not isinstance(raised, Exception):
                raise

    def fail(self, error: BaseException) -> None:
        """End the session because of an error of our own."""
        self._report(error)
        self.cut_off()

    def cut_off(self) -> None:
        """Close both connections at once."""
        self.abandon()
        self._client.abort()
        self._broker.abort()

    def abandon(self) -> None:
        """Nobody wants the result any more. A request that waits for its turn under a quota is dropped, as a broker
        drops what it has not read; any other is still forwarded if its result comes.
        """
        wait = self._wait
        if wait is not None:
            if wait.reason is PauseReason.QUOTA_TURN:
                self._wait = None
            wait.abandon()

    def end(self) -> None:
        """The session is over."""
        self.abandon()
        self._wait = None
        self._settled = self._reject = _nothing


def _respond(steps: Steps[Parts], response: bytearray) -> Parts:
    try:
        steps.send(response)
    except StopIteration as returned:
        parts: Parts = returned.value
        return parts
    raise AssertionError("a handler that has got its response returns what the client gets")


def _nothing(*_: object) -> None: ...
