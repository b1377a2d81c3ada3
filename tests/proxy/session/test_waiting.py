"""Whatever a request waits for: what fails afterwards ends the session with a line, and no client waits for ever."""

import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from structlog.testing import capture_logs

from sluicegate.protocol.framing import frame_of
from sluicegate.protocol.messages import metadata
from sluicegate.proxy.scheduling.scheduler import Judges
from sluicegate.proxy.session.dependencies import SessionDependencies
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.waiting import Tell, Waiting
from sluicegate.validation.policy import JudgementLimits
from tests.bounds.frames import good_batch, produce
from tests.proxy.session.playbook import NOW, Playbook, with_produce

_ID = b"sixteen bytes id"


class _Side:
    """A connection, as far as a wait knows it."""

    def __init__(self) -> None:
        self.closed = False
        self.held: list[PauseReason] = []

    def pause(self, reason: PauseReason) -> None:
        self.held.append(reason)

    def resume(self, reason: PauseReason) -> None:
        self.held.remove(reason)


class _Session:
    def __init__(self) -> None:
        self.client: Any = _Side()
        self.broker: Any = _Side()
        self.faults: list[BaseException] = []
        self.settled = 0

    def request_settled(self) -> None:
        self.settled += 1

    def on_our_fault(self, connection: Any, error: BaseException) -> None:
        self.faults.append(error)


def test_the_client_is_held_until_what_is_waited_for_is_there() -> None:
    session, told, found = _Session(), list[Tell[int]](), list[int]()
    waiting = Waiting(session)

    waiting.until(PauseReason.ASKING, told.append, found.append)
    assert (session.client.held, waiting.is_under_way, found) == ([PauseReason.ASKING], True, [])
    told[0](5)

    assert (session.client.held, waiting.is_under_way, found, session.settled) == ([], False, [5], 1)


def test_what_is_told_twice_is_gone_on_with_once() -> None:
    session, told, found = _Session(), list[Tell[int]](), list[int]()
    Waiting(session).until(PauseReason.ASKING, told.append, found.append)

    told[0](1)
    told[0](2)

    assert found == [1]


@pytest.mark.parametrize("second", [PauseReason.JUDGING, PauseReason.ASKING])
def test_one_wait_may_follow_another(second: PauseReason) -> None:
    session, told, found = _Session(), list[Tell[int]](), list[int]()
    waiting = Waiting(session)

    waiting.until(PauseReason.ASKING, told.append, lambda _: waiting.until(second, told.append, found.append))
    told[0](1)
    assert session.client.held[-1] is second
    assert waiting.is_under_way
    told[1](2)

    assert set(session.client.held) <= {second}
    assert found == [2]


def test_nothing_is_gone_on_with_when_the_broker_has_gone() -> None:
    session, told, found = _Session(), list[Tell[int]](), list[int]()
    Waiting(session).until(PauseReason.ASKING, told.append, found.append)
    session.broker.closed = True

    told[0](1)

    assert (found, session.settled, session.client.held) == ([], 1, [])


@pytest.mark.parametrize("error", [ValueError("ours"), MemoryError()])
def test_an_error_behind_a_wait_is_told_to_the_session(error: Exception) -> None:
    session, told = _Session(), list[Tell[int]]()

    def fail(_found: int) -> None:
        raise error

    Waiting(session).until(PauseReason.ASKING, told.append, fail)
    told[0](1)

    assert session.faults == [error]


def test_what_ends_the_process_goes_on_to_do_so() -> None:
    session, told = _Session(), list[Tell[int]]()

    def stop(_found: int) -> None:
        raise SystemExit

    Waiting(session).until(PauseReason.ASKING, told.append, stop)
    with pytest.raises(SystemExit):
        told[0](1)

    assert len(session.faults) == 1


# -- each wait of a Produce request --------------------------------------------------------------------------------


class Settings:
    """Asked for, and told when the script says so."""

    def __init__(self) -> None:
        self.tells: list[Callable[[Any], None]] = []

    def known_soon(self, _names: object) -> "Settings":
        return self

    def add_done_callback(self, done: Callable[[Any], None]) -> None:
        self.tells.append(done)


class Fails:
    """Whatever it is asked to do."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        def fail(*_: object) -> None:
            raise ValueError(name)

        return fail


def _names_answer() -> bytes:
    topic = {"error_code": 0, "name": "t", "topic_id": _ID, "partitions": []}
    answer = {"topics": [topic], "brokers": []}
    return frame_of(struct.pack(">ib", -1, 0), metadata.RESPONSE.build(answer, 12))


def _names() -> Playbook:
    play = Playbook(change=partial(with_produce, judges=Fails()))
    play.from_client(produce(13, {_ID: [(0, good_batch(NOW))]}))
    play.from_broker(_names_answer())
    return play


def _settings() -> Playbook:
    settings = Settings()
    play = Playbook(change=partial(with_produce, settings=settings, judges=Fails()))
    play.from_client(produce(9, {b"t": [(0, good_batch(NOW))]}))
    settings.tells[0](None)
    return play


def _judgement() -> Playbook:
    play = Playbook(change=partial(with_produce, judgements=Fails()))
    play.from_client(produce(9, {b"t": [(n, good_batch(NOW)) for n in range(300)]}))  # more than the loop judges itself
    play.loop.until(lambda: play.client.aborted)
    return play


@pytest.mark.parametrize("wait", [_names, _settings, _judgement])
def test_a_fault_behind_each_wait_closes_the_connection_and_writes_a_line(wait: Callable[[], Playbook]) -> None:
    with capture_logs() as lines:
        play = wait()

    assert play.client.aborted
    assert play.broker.aborted
    assert [line["event"] for line in lines] == ["a fault of sluicegate's own, connection closed: please report it"]


def test_what_the_judging_thread_fails_over_is_told_too() -> None:
    def whose_refusals_fail(dependencies: SessionDependencies) -> SessionDependencies:
        of = dependencies.requests.produce
        judges = Judges(
            of.names.by_id,
            of.rules,
            JudgementLimits(),
            of.now_ms,
            Fails().prepare,
            dependencies.loop.call_soon,
        )
        return with_produce(dependencies, judges=judges)

    play = Playbook(change=whose_refusals_fail)
    damaged = good_batch(NOW)[:-1] + b"\xff"

    with capture_logs() as lines:
        play.from_client(produce(9, {b"t": [(n, damaged) for n in range(300)]}))
        play.loop.until(lambda: play.client.aborted)

    assert "prepare" in lines[0]["exception"]
