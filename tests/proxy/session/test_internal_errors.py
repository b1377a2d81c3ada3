"""Requests after an internal error follow the operator's setting. Errors in reports have no effect on requests."""

from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from structlog.testing import capture_logs

from sluicegate.proxy.fastpath.paths import HAS_FAST_PATH
from sluicegate.proxy.scheduling.scheduler import Scheduler
from sluicegate.proxy.session.dependencies import SessionDependencies
from sluicegate.proxy.session.pass_through import PassThrough
from sluicegate.validation.policy import ValidationLimits
from sluicegate.validation.previous_times import PreviousTimes
from sluicegate.validation.rules.built_in import Size
from tests.bounds.frames import good_batch, produce, request
from tests.proxy.session.playbook import NOW, Playbook, with_produce

CLOSED = "internal error, connection closed"
FORWARDED = "internal error, request forwarded unvalidated"
REVALIDATED = "internal error, request revalidated by the slow path"
UNREPORTED = "internal error, validation not reported"
ONE = produce(9, {b"t": [(0, good_batch(NOW))]})
MANY = produce(9, {b"t": [(n, good_batch(NOW)) for n in range(300)]})  # more than the loop validates itself


def fails(*_: object) -> NoReturn:
    raise ValueError("a bug")


class FailsOnTheLoop:
    validate = staticmethod(fails)
    previous = PreviousTimes()


def in_a_thread(dependencies: SessionDependencies) -> SessionDependencies:
    of = dependencies.requests.produce
    scheduler = Scheduler(of.names.by_id, of.rules, ValidationLimits(), of.now_ms, fails, dependencies.loop.call_soon)
    return with_produce(dependencies, scheduler=scheduler)


def on_the_loop(dependencies: SessionDependencies) -> SessionDependencies:
    return with_produce(dependencies, scheduler=FailsOnTheLoop())


DAMAGED = produce(9, {b"t": [(n, good_batch(NOW)[:-1] + b"\xff") for n in range(300)]})
PLACES = pytest.mark.parametrize(("change", "request_"), [(on_the_loop, ONE), (in_a_thread, DAMAGED)])


def play_of(change: Callable[[SessionDependencies], SessionDependencies], word: str) -> Playbook:
    return Playbook(change=change, SLUICEGATE__ON_INTERNAL_ERROR=word)


@pytest.mark.internal_error
@PLACES
def test_an_internal_error_closes_the_connection_by_default(change: Any, request_: bytes) -> None:
    for play in (Playbook(change=change), play_of(change, "close")):
        with capture_logs() as lines:
            play.from_client(request_)
            play.loop.until(lambda play=play: play.client.aborted)

        assert [line["event"] for line in lines] == [CLOSED]
        assert play.parts.counters.internal_errors == {"closed": 1}
        assert not play.broker.sent


@pytest.mark.internal_error
@PLACES
def test_a_request_is_forwarded_unchanged_after_an_internal_error_if_configured(change: Any, request_: bytes) -> None:
    play = play_of(change, "forward")

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
def test_with_acks_0_no_answer_is_waited_for() -> None:
    play = play_of(on_the_loop, "forward")
    request = produce(9, {b"t": [(0, good_batch(NOW))]}, acks=0)

    play.from_client(request)

    assert play.broker.sent == request
    assert len(play.session.queue) == 0


def test_a_protocol_error_of_the_client_is_no_internal_error() -> None:
    play = play_of(on_the_loop, "forward")

    play.from_client(produce(9, {b"t": [(0, good_batch(NOW))]})[:-3] + b"\xff\xff\xff")

    assert not play.broker.sent
    assert play.parts.counters.protocol_errors == 1
    assert not play.parts.counters.internal_errors


@pytest.mark.internal_error
@pytest.mark.parametrize("which", ["request_settled", "batch_settled"])
@pytest.mark.parametrize("bad", [False, True])
def test_errors_in_counters_and_reports_do_not_affect_responses(
    which: str, bad: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deliver(is_broken: bool) -> Playbook:
        play = Playbook(False)
        if is_broken:
            monkeypatch.setattr(play.parts.view, which, fails)
        play.from_client(produce(9, {b"t": [(0, good_batch(NOW)[:-1] + b"\xff")]}) if bad else ONE)
        return play

    with capture_logs() as lines:
        play = deliver(True)
        assert not play.client.is_closing()
        play.ends()

    assert bytes(play.broker.sent) == bytes(deliver(False).broker.sent) != b""
    assert [line["event"] for line in lines].count(UNREPORTED) == 1
    assert play.parts.counters.internal_errors == {"unreported": 1}


@pytest.mark.internal_error
@pytest.mark.parametrize("word", ["close", "forward"])
def test_an_error_in_a_rule_affects_only_requests_that_it_validates(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = "[{match: t, rules: [{name: small, value: {max_size: 1000}}]}]"
    play = Playbook(SLUICEGATE__ON_INTERNAL_ERROR=word, SLUICEGATE__TOPICS=rules)
    monkeypatch.setattr(Size, "fault", fails)
    of_another = produce(9, {b"another": [(0, good_batch(NOW))]})

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
def test_a_request_over_which_the_fast_path_fails_is_validated_by_the_slow_one(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = produce(11, {b"t": [(0, good_batch(NOW))]})
    bad = produce(11, {b"t": [(0, good_batch(NOW)[:-1] + b"\xff")]})
    unread = request(3, 9, b"\1\0\0\0\0")
    play = Playbook(SLUICEGATE__ON_INTERNAL_ERROR=word)
    monkeypatch.setattr(PassThrough, "plain_finish", fails)  # the slow path has already looked it up

    with capture_logs() as lines:
        play.from_client(good)  # validated by the slow path, from which the fast path learns
        play.from_client(good + good)
        play.from_client(unread + good)
        before = len(play.broker.sent)
        play.from_client(bad)
        play.loop.until(lambda: len(play.broker.sent) > before)

    assert play.broker.sent.startswith(good * 3 + unread + good)
    assert bad not in play.broker.sent
    assert [line["event"] for line in lines if "internal error" in line["event"]] == [REVALIDATED]
    assert play.parts.counters.internal_errors == {"revalidated": 3}
    assert not play.client.is_closing()
    assert len(play.session.queue) >= 5
