"""Runs the handlers of one connection's requests, which are generators that yield effects and do no I/O.

If an effect's result is not immediately available, the runner pauses the client, so that no later request overtakes
this one. It resumes the client and the handler when the result arrives. An internal error is logged and closes the
connection, so that no client waits forever. The connection's deadline limits the wait (`busy_with` in
`sluicegate.proxy.session.deadlines`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from sluicegate.protocol.errors import SenderError
from sluicegate.protocol.framing import Parts
from sluicegate.proxy.session.effect import Effect, Steps
from sluicegate.proxy.session.in_flight import Finish
from sluicegate.proxy.session.pause_reason import Pausable, PauseReason

T = TypeVar("T")


class Resume(Protocol):
    """Continues a handler with a result, or raises an error in it. Further calls have no effect."""

    def __call__(self, value: Any, error: BaseException | None = None, /) -> None: ...


def _nothing(*_: object) -> None: ...


@dataclass(frozen=True, slots=True, eq=False)
class Wait:
    """A result that is not yet available. The client is paused for `reason` until the result arrives.

    `ask` requests the result. It calls its argument once, on the event loop, with the result. `abandon` cancels the
    wait.
    """

    reason: PauseReason
    ask: Callable[[Resume], object]
    abandon: Callable[[], None] = _nothing


class AwaitedResponse:
    """The broker's response to a request that `forward` sends, without pausing the client.

    The handler returns the client's response.
    """

    def __init__(self, forward: Callable[[Finish], None]) -> None:
        self.forward = forward


Perform = Callable[[Effect[Any]], object]
"""Performs an effect and returns its result, a Wait or an AwaitedResponse. Its errors are raised in the handler."""


class PausedClient(Pausable, Protocol):
    """The connection that is paused while its request waits."""

    def abort(self) -> None: ...


class AwaitedBroker(Protocol):
    """The broker connection."""

    @property
    def closed(self) -> bool: ...

    def abort(self) -> None: ...


class RequestRunner:
    """Runs one session's requests, one at a time.

    `report` logs an internal error. `reject` ends the session because of a malformed request. `settled` is called after
    each wait.
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
        """Whether a request waits."""
        return self._wait is not None

    @property
    def busy_with(self) -> int | None:
        """The number of the request that waits, or None if no request waits or the wait is for a quota."""
        return self._requests if self._waits_for not in (None, PauseReason.QUOTA_QUEUE) else None

    def run(self, steps: Steps[Any], perform: Perform) -> None:
        """Run a handler until its first wait. Errors before that wait are raised to the caller."""
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
                error = None  # the error's traceback refers to this frame
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
        """Continue the handler, unless the broker has disconnected."""
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
        """Log an internal error and end the session."""
        self._report(error)
        self.cut_off()

    def cut_off(self) -> None:
        """Close both connections immediately."""
        self.abandon()
        self._client.abort()
        self._broker.abort()

    def abandon(self) -> None:
        """Cancel the wait.

        A request that waits for a quota is dropped, as a broker drops unread requests. Any other request is still
        forwarded when its result arrives.
        """
        wait = self._wait
        if wait is not None:
            if wait.reason is PauseReason.QUOTA_QUEUE:
                self._wait = None
            wait.abandon()

    def end(self) -> None:
        """Clean up at the end of the session."""
        self.abandon()
        self._wait = None
        self._settled = self._reject = _nothing


def run_at_once(steps: Steps[T], perform: Perform) -> T:
    """Run a handler whose effects all return their results immediately, and return its result.

    Raises the handler's errors.
    """
    value: Any = None
    while True:
        try:
            effect = steps.send(value)
        except StopIteration as returned:
            result: T = returned.value
            return result
        value = perform(effect)


def _respond(steps: Steps[Parts], response: bytearray) -> Parts:
    try:
        steps.send(response)
    except StopIteration as returned:
        parts: Parts = returned.value
        return parts
    raise AssertionError("a handler that has got its response returns what the client gets")
