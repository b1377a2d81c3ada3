"""What becomes of requests where sluicegate itself fails: the operator's word. What is only told changes nothing."""

from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from structlog.testing import capture_logs

from sluicegate.proxy.judgement.judging import Judges
from sluicegate.proxy.session.needs import SessionNeeds
from sluicegate.validation.policy import JudgementLimits
from tests.bounds.frames import good_batch, produce
from tests.proxy.session.playbook import NOW, Playbook, with_gate

CLOSED = "a fault of sluicegate's own, connection closed: please report it"
FORWARDED = "a fault of sluicegate's own, request forwarded unjudged: please report it"
NOT_TOLD = "a fault of sluicegate's own, a judgement is not told: please report it"
ONE = produce(9, {b"t": [(0, good_batch(NOW))]})
MANY = produce(9, {b"t": [(n, good_batch(NOW)) for n in range(300)]})  # more than the loop judges itself


def fails(*_: object) -> NoReturn:
    raise ValueError("a bug")


class FailsOnTheLoop:
    judge = staticmethod(fails)


def in_a_thread(needs: SessionNeeds) -> SessionNeeds:
    gate = needs.requests.gate
    judges = Judges(gate.names.by_id, gate.rules, JudgementLimits(), gate.now_ms, fails, needs.loop.call_soon)
    return with_gate(needs, judges=judges)


def on_the_loop(needs: SessionNeeds) -> SessionNeeds:
    return with_gate(needs, judges=FailsOnTheLoop())


DAMAGED = produce(9, {b"t": [(n, good_batch(NOW)[:-1] + b"\xff") for n in range(300)]})
PLACES = pytest.mark.parametrize(("change", "request_"), [(on_the_loop, ONE), (in_a_thread, DAMAGED)])


def play_of(change: Callable[[SessionNeeds], SessionNeeds], word: str) -> Playbook:
    return Playbook(change=change, SLUICEGATE__ON_INTERNAL_ERROR=word)


@PLACES
def test_nothing_passes_unjudged_unless_that_is_asked_for(change: Any, request_: bytes) -> None:
    for play in (Playbook(change=change), play_of(change, "close")):
        with capture_logs() as lines:
            play.from_client(request_)
            play.loop.until(lambda play=play: play.client.aborted)  # type: ignore[misc]

        assert [line["event"] for line in lines] == [CLOSED]
        assert play.parts.tally.internal_errors == {"closed": 1}
        assert not play.broker.sent


@PLACES
def test_a_request_goes_on_as_it_came_and_so_does_its_answer(change: Any, request_: bytes) -> None:
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
    assert play.parts.tally.internal_errors == {"forwarded": 1}
    assert not play.client.is_closing()


def test_with_acks_0_no_answer_is_waited_for() -> None:
    play = play_of(on_the_loop, "forward")
    request = produce(9, {b"t": [(0, good_batch(NOW))]}, acks=0)

    play.from_client(request)

    assert play.broker.sent == request
    assert len(play.session.queue) == 0


def test_what_a_client_breaks_is_its_own_fault_all_the_same() -> None:
    play = play_of(on_the_loop, "forward")

    play.from_client(produce(9, {b"t": [(0, good_batch(NOW))]})[:-3] + b"\xff\xff\xff")

    assert not play.broker.sent
    assert play.parts.tally.bad_clients == 1
    assert not play.parts.tally.internal_errors


@pytest.mark.parametrize("which", ["observer", "view"])
@pytest.mark.parametrize("bad", [False, True])
def test_counting_and_telling_never_touch_the_wire(which: str, bad: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def deliver(is_broken: bool) -> Playbook:
        play = Playbook(False)
        if is_broken:
            monkeypatch.setattr(getattr(play.parts, which), "judged", fails)
        play.from_client(produce(9, {b"t": [(0, good_batch(NOW)[:-1] + b"\xff")]}) if bad else ONE)
        return play

    with capture_logs() as lines:
        play = deliver(True)

    assert bytes(play.broker.sent) == bytes(deliver(False).broker.sent) != b""
    assert [line["event"] for line in lines].count(NOT_TOLD) == 1
    assert play.parts.tally.internal_errors == {"not told": 1}
    assert not play.client.is_closing()
