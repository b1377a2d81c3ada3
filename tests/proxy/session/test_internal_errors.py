"""After an internal error, requests are handled as configured. Errors in reports do not affect requests."""

from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from structlog.testing import capture_logs

from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.proxy.fastpath.paths import HAS_FAST_PATH, make_ordinary_requests
from sluicegate.proxy.responses.dispatch import Dispatch
from sluicegate.proxy.scheduling.scheduler import Scheduler
from sluicegate.proxy.session.handlers.dependencies import SessionDependencies
from sluicegate.validation.policy import ValidationLimits
from sluicegate.validation.previous_times import PreviousTimes
from tests.bounds.frames import good_batch, sized_produce_request, sized_request
from tests.proxy.session.playbook import NOW, Playbook, replace_produce_dependencies

CLOSED = "internal error, connection closed"
FORWARDED = "internal error, request forwarded unvalidated"
REVALIDATED = "internal error, request revalidated by the slow path"
ONE = sized_produce_request(9, {b"t": [(0, good_batch(NOW))]})
MANY = sized_produce_request(
    9, {b"t": [(n, good_batch(NOW)) for n in range(300)]}
)  # more work than the loop validates itself


def raise_bug(*_: object) -> NoReturn:
    raise ValueError("a bug")


class FailsOnTheLoop:
    validate = staticmethod(raise_bug)
    previous = PreviousTimes()
    converts_legacy = False

    def must_convert(self, _request: ProduceRequest) -> bool:
        return self.converts_legacy


def fail_in_a_thread(dependencies: SessionDependencies) -> SessionDependencies:
    of = dependencies.requests.produce
    scheduler = Scheduler(
        of.names.by_id, of.rules, ValidationLimits(), of.now_ms, raise_bug, dependencies.loop.call_soon
    )
    return replace_produce_dependencies(dependencies, scheduler=scheduler)


def fail_on_the_loop(dependencies: SessionDependencies) -> SessionDependencies:
    return replace_produce_dependencies(dependencies, scheduler=FailsOnTheLoop())


class FailsForOneTopic:
    """Validates all requests but those for topic `t`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.previous = scheduler.previous
        self.converts_legacy = scheduler.converts_legacy
        self.must_convert = scheduler.must_convert

    def validate(self, request: ProduceRequest, *others: Any) -> Dispatch | None:
        if any(topic.name == "t" for topic in request.topics):
            raise_bug()
        return self._scheduler.validate(request, *others)


def fail_for_one_topic(dependencies: SessionDependencies) -> SessionDependencies:
    return replace_produce_dependencies(
        dependencies, scheduler=FailsForOneTopic(dependencies.requests.produce.scheduler)
    )


class Clock:
    """The fast path's clock. If it is `broken` it fails at each request, and not when a topic is added after that."""

    def __init__(self) -> None:
        self.is_broken = self._has_failed = False

    def __call__(self) -> int:
        if self.is_broken:
            self._has_failed = not self._has_failed
            if self._has_failed:
                raise_bug()
        return NOW


DAMAGED = sized_produce_request(9, {b"t": [(n, good_batch(NOW)[:-1] + b"\xff") for n in range(300)]})
PLACES = pytest.mark.parametrize(("change", "request_"), [(fail_on_the_loop, ONE), (fail_in_a_thread, DAMAGED)])


def session_with_bug(change: Callable[[SessionDependencies], SessionDependencies], word: str) -> Playbook:
    return Playbook(change=change, SLUICEGATE__ON_INTERNAL_ERROR=word)


@pytest.mark.internal_error
@PLACES
def test_an_internal_error_closes_the_connection_by_default(change: Any, request_: bytes) -> None:
    for play in (Playbook(change=change), session_with_bug(change, "close")):
        with capture_logs() as lines:
            play.from_client(request_)
            play.loop.until(lambda play=play: play.client.aborted)

        assert [line["event"] for line in lines] == [CLOSED]
        assert play.parts.counters.internal_errors == {"closed": 1}
        assert not play.broker.sent


@pytest.mark.internal_error
@PLACES
def test_a_request_is_forwarded_unchanged_after_an_internal_error_if_configured(change: Any, request_: bytes) -> None:
    play = session_with_bug(change, "forward")

    with capture_logs() as lines:
        play.from_client(request_)
        play.loop.until(lambda: bool(play.broker.sent))
    answer = b"\0\0\0\x0c\0\0\0\x01\0\x01\0\0\0\0\0\0"
    play.from_broker(answer)

    assert play.broker.sent == request_
    assert play.client.sent == answer
    assert [line["event"] for line in lines] == [FORWARDED]
    assert "a bug" in lines[0]["exception"]
    assert play.parts.counters.internal_errors == {"forwarded": 1}
    assert not play.client.is_closing()


@pytest.mark.internal_error
def test_an_internal_error_with_acks_0_awaits_no_response() -> None:
    play = session_with_bug(fail_on_the_loop, "forward")
    request = sized_produce_request(9, {b"t": [(0, good_batch(NOW))]}, acks=0)

    play.from_client(request)

    assert play.broker.sent == request
    assert len(play.session.queue) == 0


def test_client_protocol_error_is_not_counted_as_internal_error() -> None:
    play = session_with_bug(fail_on_the_loop, "forward")

    play.from_client(sized_produce_request(9, {b"t": [(0, good_batch(NOW))]})[:-3] + b"\xff\xff\xff")

    assert not play.broker.sent
    assert play.parts.counters.protocol_errors == 1
    assert not play.parts.counters.internal_errors


@pytest.mark.internal_error
@pytest.mark.parametrize("word", ["close", "forward"])
def test_an_error_in_the_validation_of_a_topic_affects_only_its_requests(word: str) -> None:
    play = Playbook(change=fail_for_one_topic, SLUICEGATE__ON_INTERNAL_ERROR=word)
    of_another = sized_produce_request(9, {b"another": [(0, good_batch(NOW))]})

    with capture_logs() as lines:
        play.from_client(of_another * 2)
        play.loop.until(lambda: len(play.broker.sent) == 2 * len(of_another))
        assert not lines
        play.from_client(ONE)
        play.loop.until(lambda: play.client.aborted or len(play.broker.sent) > 2 * len(of_another))

    if word == "close":
        assert [line["event"] for line in lines] == [CLOSED]
        assert play.client.aborted
        assert play.broker.sent == of_another * 2
    else:
        assert [line["event"] for line in lines] == [FORWARDED]
        assert play.broker.sent == of_another * 2 + ONE
        play.from_client(of_another)
        assert play.broker.sent == of_another * 2 + ONE + of_another


@pytest.mark.internal_error
@pytest.mark.skipif(not HAS_FAST_PATH, reason="there is no fast path: it was not compiled")
@pytest.mark.parametrize("word", ["close", "forward"])
def test_request_is_validated_on_the_slow_path_if_the_fast_path_fails(word: str) -> None:
    good = sized_produce_request(11, {b"t": [(0, good_batch(NOW))]})
    bad = sized_produce_request(11, {b"t": [(0, good_batch(NOW)[:-1] + b"\xff")]})
    unread = sized_request(3, 9, b"\1\0\0\0\0")
    clock = Clock()

    def with_clock(dependencies: SessionDependencies) -> SessionDependencies:
        rules = dependencies.requests.produce.rules
        return replace_produce_dependencies(
            dependencies, ordinary=make_ordinary_requests(ValidationLimits(), 1000, clock, rules)
        )

    play = Playbook(change=with_clock, SLUICEGATE__ON_INTERNAL_ERROR=word)

    with capture_logs() as lines:
        play.from_client(good)  # validated on the slow path, from which the fast path learns
        clock.is_broken = True
        play.from_client(good + good)
        play.from_client(unread + good)
        play.from_client(bad)

    assert play.broker.sent.startswith(good * 3 + unread + good)
    assert bad not in play.broker.sent
    assert [line["event"] for line in lines if "internal error" in line["event"]] == [REVALIDATED]
    assert play.parts.counters.internal_errors == {"revalidated": 4}
    assert not play.client.is_closing()
    assert len(play.session.queue) >= 5
