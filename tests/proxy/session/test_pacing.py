"""Deferred work runs a few steps at a time."""

import asyncio
import time
from collections.abc import Callable
from functools import partial

import pytest
import uvloop

from sluicegate.proxy.session.pacing import LoopLateness, Pacer


class ScriptedTurn:
    def __init__(self, check_lateness: Callable[[], bool]) -> None:
        self.check_lateness = check_lateness
        self.times_late = 0


def test_the_pacer_runs_steps_in_order_until_the_loop_is_late() -> None:
    rounds: list[Callable[[], None]] = []
    done: list[int] = []
    pacer = Pacer(rounds.append, ScriptedTurn(lambda: len(done) % 3 == 0))

    for number in range(7):
        pacer.later(lambda number=number: done.append(number))
    assert done == []
    seen = []
    while rounds:
        rounds.pop(0)()
        seen.append(len(done))

    assert done == list(range(7))
    assert seen == [3, 6, 7]


def test_a_step_added_by_a_step_runs_in_the_next_round() -> None:
    rounds: list[Callable[[], None]] = []
    done: list[str] = []
    pacer = Pacer(rounds.append, ScriptedTurn(lambda: False))
    pacer.later(lambda: (done.append("first"), pacer.later(lambda: done.append("second")))[0])

    rounds.pop(0)()
    assert done == ["first"]
    rounds.pop(0)()
    assert done == ["first", "second"]
    assert not rounds


def test_later_steps_run_after_a_step_raises_an_error() -> None:
    rounds: list[Callable[[], None]] = []
    done: list[str] = []
    pacer = Pacer(rounds.append, ScriptedTurn(lambda: False))

    def raise_error() -> None:
        raise ZeroDivisionError

    pacer.later(raise_error)
    pacer.later(lambda: done.append("next"))

    with pytest.raises(ZeroDivisionError):
        rounds.pop(0)()
    rounds.pop(0)()
    assert done == ["next"]


def test_a_loop_is_late_until_it_polls_its_sockets() -> None:
    now, behind = [0.0], []
    turn = LoopLateness(behind.append, lambda: now[0])

    def lateness_at(seconds: float) -> bool:
        now[0] = seconds
        return turn.check_lateness()

    assert not lateness_at(0.0004)
    assert not lateness_at(0.0007), "lateness is only known from now on"
    assert not lateness_at(0.0011)
    assert lateness_at(0.0013)
    behind.pop()()
    assert not lateness_at(0.0015)
    assert not behind, "no work is deferred without a reason"


def test_an_idle_loop_is_not_late_at_its_first_work() -> None:
    now, behind = [0.0], []
    turn = LoopLateness(behind.append, lambda: now[0])

    now[0] = 100.0

    assert not turn.check_lateness()


@pytest.mark.parametrize("loop_of", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_real_event_loop_becomes_late_and_recovers_after_polling_its_sockets(
    loop_of: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def take_turns() -> int:
        turn = LoopLateness(asyncio.get_running_loop().call_soon, time.monotonic)
        turns = 0
        for _ in range(5):
            end = time.monotonic() + 5
            while not turn.check_lateness():
                assert time.monotonic() < end, "a loop that is busy for seconds was never late"
            turns += 1
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not turn.check_lateness()
        return turns

    loop = loop_of()
    try:
        assert loop.run_until_complete(take_turns()) == 5
    finally:
        loop.close()


def test_fewer_steps_run_after_slow_polls() -> None:
    rounds: list[Callable[[], None]] = []
    done: list[int] = []
    turn = ScriptedTurn(lambda: False)
    pacer = Pacer(rounds.append, turn)
    for number in range(2000):
        pacer.later(lambda number=number: done.append(number))

    seen = []
    for _ in range(12):
        turn.times_late += 1
        before = len(done)
        rounds.pop(0)()
        seen.append(len(done) - before)
    for _ in range(2):
        before = len(done)
        rounds.pop(0)()
        seen.append(len(done) - before)

    assert seen == [512, 256, 128, 64, 32, 16, 8, 4, 2, 1, 1, 1, 2, 4]


def test_costly_deferred_steps_are_spread_over_polls() -> None:
    rounds: list[Callable[[], None]] = []
    done: list[int] = []
    pacer = Pacer(rounds.append, ScriptedTurn(lambda: False), most_steps=8)
    for number in range(20):
        pacer.later(lambda number=number: done.append(number))

    seen = []
    while rounds:
        rounds.pop(0)()
        seen.append(len(done))

    assert seen == [8, 16, 20]


def test_two_pacers_both_slow_down_when_the_loop_is_late() -> None:
    rounds: list[Callable[[], None]] = []
    done: list[str] = []
    turn = ScriptedTurn(lambda: False)
    one, other = Pacer(rounds.append, turn, most_steps=2), Pacer(rounds.append, turn, most_steps=2)
    for pacer, name in ((one, "one"), (other, "other")):
        for _ in range(2):
            pacer.later(lambda name=name: done.append(name))

    turn.times_late += 1
    rounds.pop(0)()
    rounds.pop(0)()

    assert done == ["one", "other"], "half as many of each"


def test_steps_of_one_address_do_not_wait_for_a_thousand_of_another() -> None:
    rounds: list[Callable[[], None]] = []
    done: list[str] = []
    pacer = Pacer(rounds.append, ScriptedTurn(lambda: False), most_steps=4)
    for number in range(1000):
        pacer.later(lambda number=number: done.append(f"of many {number}"), "192.0.2.1")
    for number in range(2):
        pacer.later(lambda number=number: done.append(f"alone {number}"), "192.0.2.2")

    rounds.pop(0)()

    assert done == ["of many 0", "alone 0", "of many 1", "alone 1"]


def test_a_failing_step_is_reported_and_later_steps_run() -> None:
    rounds: list[Callable[[], None]] = []
    done: list[str] = []
    pacer = Pacer(rounds.append, ScriptedTurn(lambda: False))
    pacer.later(partial(done.remove, "what is not there"), "192.0.2.1")
    pacer.later(lambda: done.append("the next"), "192.0.2.1")

    with pytest.raises(ValueError):
        rounds.pop(0)()
    rounds.pop(0)()

    assert done == ["the next"] and not rounds
