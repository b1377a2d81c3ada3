"""Steps go on a few at a time."""

import asyncio
import time
from collections.abc import Callable

import pytest
import uvloop

from sluicegate.proxy.session.pacing import LoopTurn, Pacer


class ATurn:
    def __init__(self, is_late: Callable[[], bool], was_late: Callable[[], bool] = lambda: False) -> None:
        self.is_late = is_late
        self.was_late = was_late


def test_steps_run_in_their_order_until_it_is_late_between_two_looks_at_the_sockets() -> None:
    rounds: list[Callable[[], None]] = []
    done: list[int] = []
    pacer = Pacer(rounds.append, ATurn(lambda: len(done) % 3 == 0))

    for number in range(7):
        pacer.later(lambda number=number: done.append(number))  # type: ignore[misc]
    assert done == []
    seen = []
    while rounds:
        rounds.pop(0)()
        seen.append(len(done))

    assert done == list(range(7))
    assert seen == [3, 6, 7]


def test_a_step_may_ask_for_another_which_waits_for_the_next_round() -> None:
    rounds: list[Callable[[], None]] = []
    done: list[str] = []
    pacer = Pacer(rounds.append, ATurn(lambda: False))
    pacer.later(lambda: (done.append("first"), pacer.later(lambda: done.append("second")))[0])

    rounds.pop(0)()
    assert done == ["first"]
    rounds.pop(0)()
    assert done == ["first", "second"]
    assert not rounds


def test_a_step_that_fails_keeps_no_other_from_its_turn() -> None:
    rounds: list[Callable[[], None]] = []
    done: list[str] = []
    pacer = Pacer(rounds.append, ATurn(lambda: False))

    def fails() -> None:
        raise ZeroDivisionError

    pacer.later(fails)
    pacer.later(lambda: done.append("next"))

    with pytest.raises(ZeroDivisionError):
        rounds.pop(0)()
    rounds.pop(0)()
    assert done == ["next"]


def test_a_loop_that_did_not_look_at_its_sockets_is_late_and_no_longer_once_it_has() -> None:
    now, behind = [0.0], []
    turn = LoopTurn(behind.append, lambda: now[0])

    def at(seconds: float) -> bool:
        now[0] = seconds
        return turn.is_late()

    assert not at(0.0004)
    assert not at(0.0007), "only from now on is anything known"
    assert not at(0.0011)
    assert at(0.0013)
    behind.pop()()
    assert not at(0.0015)
    assert not behind, "nothing is put behind while there is nothing to find out"


def test_an_idle_loop_is_not_late_at_its_first_work() -> None:
    now, behind = [0.0], []
    turn = LoopTurn(behind.append, lambda: now[0])

    now[0] = 100.0

    assert not turn.is_late()


@pytest.mark.parametrize("loop_of", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_work_on_a_real_loop_ends_soon_and_the_loop_looks_at_its_sockets(
    loop_of: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def work() -> int:
        turn = LoopTurn(asyncio.get_running_loop().call_soon, time.monotonic)
        turns = 0
        for _ in range(5):
            end = time.monotonic() + 5
            while not turn.is_late():
                assert time.monotonic() < end, "a loop that is busy for seconds was never late"
            turns += 1
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not turn.is_late()
        return turns

    loop = loop_of()
    try:
        assert loop.run_until_complete(work()) == 5
    finally:
        loop.close()


def test_where_looking_at_the_sockets_took_long_fewer_steps_are_run_before_the_next_look() -> None:
    rounds: list[Callable[[], None]] = []
    done: list[int] = []
    late = [True]
    pacer = Pacer(rounds.append, ATurn(lambda: False, lambda: late[0]))
    for number in range(2000):
        pacer.later(lambda number=number: done.append(number))  # type: ignore[misc]

    seen = []
    for _ in range(12):
        before = len(done)
        rounds.pop(0)()
        seen.append(len(done) - before)
    late[0] = False
    for _ in range(2):
        before = len(done)
        rounds.pop(0)()
        seen.append(len(done) - before)

    assert seen == [512, 256, 128, 64, 32, 16, 8, 4, 2, 1, 1, 1, 2, 4]
