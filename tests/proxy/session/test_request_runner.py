"""In the runner of handlers, a failure after a wait ends the session with a log line, and no client waits forever."""

import struct
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, NoReturn

import pytest
from structlog.testing import capture_logs

from sluicegate.protocol.errors import MalformedMessage, SenderError
from sluicegate.protocol.framing import Parts, frame_of
from sluicegate.protocol.messages.cluster import METADATA_RESPONSE
from sluicegate.proxy.scheduling.scheduler import Scheduler
from sluicegate.proxy.session.effect import Steps
from sluicegate.proxy.session.handlers.dependencies import SessionDependencies
from sluicegate.proxy.session.in_flight import Finish
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.request_runner import AwaitedResponse, RequestRunner, Resume, Wait
from sluicegate.validation.policy import ValidationLimits
from tests.bounds.frames import good_batch, sized_produce_request
from tests.proxy.session.playbook import NOW, Playbook, replace_produce_dependencies

_ID = b"sixteen bytes id"


class _Side:
    """The part of a connection that a runner uses."""

    def __init__(self) -> None:
        self.closed = False
        self.aborted = False
        self.paused: list[PauseReason] = []

    def pause(self, reason: PauseReason) -> None:
        self.paused.append(reason)

    def resume(self, reason: PauseReason) -> None:
        self.paused.remove(reason)

    def abort(self) -> None:
        self.aborted = True


class _Run:
    """A runner and its handlers, which yield pause reasons and wait for them."""

    def __init__(self) -> None:
        self.client, self.broker = _Side(), _Side()
        self.faults: list[BaseException] = []
        self.rejected: list[SenderError] = []
        self.settled = 0
        self.resumes: list[Resume] = []
        self.abandoned = 0
        self.runner = RequestRunner(self.client, self.broker, self.faults.append, self.rejected.append, self._settled)

    def _settled(self) -> None:
        self.settled += 1

    def _abandon(self) -> None:
        self.abandoned += 1

    def perform(self, effect: object) -> object:
        if isinstance(effect, PauseReason):
            return Wait(effect, self.resumes.append, self._abandon)
        if isinstance(effect, Exception):
            raise effect
        return effect

    def begin(self, steps: Steps[None]) -> None:
        self.runner.run(steps, self.perform)


def _steps(found: list[object], *effects: object) -> Generator[Any, Any, None]:
    for effect in effects:
        found.append((yield effect))  # each result is sent before the next effect is yielded


def test_a_handler_without_a_wait_runs_to_its_end() -> None:
    run, found = _Run(), list[object]()

    run.begin(_steps(found, 1, "two"))

    assert (found, run.runner.is_busy, run.client.paused, run.settled) == ([1, "two"], False, [], 0)


def test_client_is_paused_until_the_awaited_result_arrives() -> None:
    run, found = _Run(), list[object]()

    run.begin(_steps(found, PauseReason.TOPIC_NAMES))
    assert (run.client.paused, run.runner.is_busy, run.runner.busy_with) == ([PauseReason.TOPIC_NAMES], True, 1)
    run.resumes[0](5)

    assert (run.client.paused, run.runner.is_busy, found, run.settled) == ([], False, [5], 1)


def test_a_second_result_for_a_resumed_handler_is_ignored() -> None:
    run, found = _Run(), list[object]()
    run.begin(_steps(found, PauseReason.TOPIC_NAMES, PauseReason.TOPIC_NAMES))

    run.resumes[0](1)
    run.resumes[0](2)

    assert found == [1]
    assert run.runner.is_busy


@pytest.mark.parametrize("second", [PauseReason.VALIDATING, PauseReason.TOPIC_NAMES])
def test_a_handler_may_wait_again_as_soon_as_it_is_resumed(second: PauseReason) -> None:
    run, found = _Run(), list[object]()

    run.begin(_steps(found, PauseReason.TOPIC_NAMES, second))
    run.resumes[0](1)
    assert second in run.client.paused
    assert run.runner.is_busy
    run.resumes[1](2)

    assert set(run.client.paused) <= {second}
    assert found == [1, 2]


def test_handler_continues_if_its_wait_resumes_immediately() -> None:
    run, found = _Run(), list[object]()
    wait = Wait(PauseReason.TOPIC_NAMES, lambda resume: resume(7))

    run.runner.run(_steps(found, 1, 2), lambda effect: wait if effect == 1 else effect)

    assert (found, run.client.paused, run.runner.is_busy) == ([7, 2], [], False)


def test_handler_does_not_continue_after_its_broker_connection_closes() -> None:
    run, found = _Run(), list[object]()
    run.begin(_steps(found, PauseReason.TOPIC_NAMES))
    run.broker.closed = True

    run.resumes[0](1)

    assert (found, run.settled, run.client.paused) == ([], 1, [])


def test_an_error_of_an_effect_is_raised_in_the_handler() -> None:
    run, caught = _Run(), list[Exception]()

    def steps() -> Generator[Any, Any, None]:
        for effect in (ValueError("now"), PauseReason.VALIDATING):
            try:
                yield effect
            except ValueError as error:
                caught.append(error)

    run.begin(steps())
    run.resumes[0](None, ValueError("later"))

    assert [str(error) for error in caught] == ["now", "later"]
    assert not run.faults


@pytest.mark.parametrize("error", [ValueError("ours"), MemoryError()])
def test_an_error_after_a_wait_ends_the_session(error: Exception) -> None:
    run = _Run()
    run.begin(_steps([], PauseReason.TOPIC_NAMES, error))

    run.resumes[0](1)

    assert run.faults == [error]
    assert run.client.aborted
    assert run.broker.aborted


def test_malformed_request_after_a_wait_is_reported_as_a_client_error() -> None:
    run, malformed = _Run(), MalformedMessage("no batch")

    def steps() -> Generator[Any, Any, None]:
        yield PauseReason.QUOTA_QUEUE
        raise malformed

    run.begin(steps())
    run.resumes[0](None)

    assert (run.rejected, run.faults) == ([malformed], [])
    assert not run.runner.is_busy


def test_an_error_before_the_first_wait_is_raised_to_the_caller() -> None:
    run = _Run()

    with pytest.raises(ValueError, match="ours"):
        run.begin(_steps([], ValueError("ours")))

    assert not run.faults


def test_exceptions_that_end_the_process_are_not_swallowed() -> None:
    run = _Run()

    def stop() -> Generator[Any, Any, None]:
        yield PauseReason.TOPIC_NAMES
        raise SystemExit

    run.begin(stop())
    with pytest.raises(SystemExit):
        run.resumes[0](1)

    assert len(run.faults) == 1


def test_a_request_that_waits_for_its_quota_is_dropped_when_it_is_abandoned() -> None:
    run, found = _Run(), list[object]()
    run.begin(_steps(found, PauseReason.QUOTA_QUEUE))
    assert run.runner.busy_with is None

    run.runner.abandon()
    run.resumes[0](None)

    assert (found, run.runner.is_busy) == ([], False)


def test_an_abandoned_request_that_waits_for_no_quota_is_forwarded_if_its_result_comes() -> None:
    run, found = _Run(), list[object]()
    run.begin(_steps(found, PauseReason.VALIDATING))

    run.runner.abandon()
    run.resumes[0](3)

    assert run.abandoned == 1
    assert found == [3]


def test_a_handler_does_not_continue_after_its_session_has_ended() -> None:
    run, found = _Run(), list[object]()
    run.begin(_steps(found, PauseReason.VALIDATING))

    run.runner.end()
    run.resumes[0](3)

    assert (found, run.settled) == ([], 0)
    assert run.abandoned == 1


def test_awaited_response_pauses_no_client_and_is_rewritten_by_the_handler() -> None:
    run, sent = _Run(), list[Finish]()

    def handle_login() -> Generator[Any, Any, Parts]:
        response: bytearray = yield "forward"
        return (response, b"!")

    run.runner.run(handle_login(), lambda _: AwaitedResponse(sent.append))

    assert (run.client.paused, run.runner.is_busy) == ([], False)
    assert sent[0](bytearray(b"yes")) == (bytearray(b"yes"), b"!")


# -- the waits of a Produce request --------------------------------------------------------------------------------


class Settings:
    """Settings that are requested, and known when the test says so."""

    def __init__(self) -> None:
        self.tells: list[Callable[[Any], None]] = []

    def settings_pending(self, _names: object) -> "Settings":
        return self

    def add_done_callback(self, done: Callable[[Any], None]) -> None:
        self.tells.append(done)


class FailsAlways:
    """Fails in every method."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        def raise_error(*_: object) -> None:
            raise ValueError(name)

        return raise_error


def _names_response() -> bytes:
    topic = {"error_code": 0, "name": "t", "topic_id": _ID, "partitions": []}
    answer = {"topics": [topic], "brokers": []}
    return frame_of(struct.pack(">ib", -1, 0), METADATA_RESPONSE.build(answer, 12))


def _names() -> Playbook:
    play = Playbook(change=partial(replace_produce_dependencies, scheduler=FailsAlways()))
    play.from_client(sized_produce_request(13, {_ID: [(0, good_batch(NOW))]}))
    play.from_broker(_names_response())
    return play


def _settings() -> Playbook:
    settings = Settings()
    play = Playbook(change=partial(replace_produce_dependencies, settings=settings, scheduler=FailsAlways()))
    play.from_client(sized_produce_request(9, {b"t": [(0, good_batch(NOW))]}))
    settings.tells[0](None)
    return play


def _fails(*_: object) -> NoReturn:
    raise ValueError("a bug")


def _validation() -> Playbook:
    play = Playbook(change=partial(replace_produce_dependencies, now_ms=_fails))
    play.from_client(
        sized_produce_request(9, {b"t": [(n, good_batch(NOW)) for n in range(300)]})
    )  # more work than the loop validates itself
    play.loop.until(lambda: play.client.aborted)
    return play


@pytest.mark.internal_error
@pytest.mark.parametrize("wait", [_names, _settings, _validation])
def test_an_error_after_a_wait_closes_the_connection_and_is_logged(wait: Callable[[], Playbook]) -> None:
    with capture_logs() as lines:
        play = wait()

    assert play.client.aborted
    assert play.broker.aborted
    assert [line["event"] for line in lines] == ["internal error, connection closed"]


@pytest.mark.internal_error
def test_an_error_in_the_validation_thread_is_reported() -> None:
    def whose_rejections_fail(dependencies: SessionDependencies) -> SessionDependencies:
        of = dependencies.requests.produce
        scheduler = Scheduler(
            of.names.by_id,
            of.rules,
            ValidationLimits(),
            of.now_ms,
            FailsAlways().prepare,
            dependencies.loop.call_soon,
        )
        return replace_produce_dependencies(dependencies, scheduler=scheduler)

    play = Playbook(change=whose_rejections_fail)
    damaged = good_batch(NOW)[:-1] + b"\xff"

    with capture_logs() as lines:
        play.from_client(sized_produce_request(9, {b"t": [(n, damaged) for n in range(300)]}))
        play.loop.until(lambda: play.client.aborted)

    assert "prepare" in lines[0]["exception"]
