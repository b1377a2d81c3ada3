"""Steps go on a few at a time."""

from collections.abc import Callable

import pytest

from proxy.pacing import Pacer


def test_steps_run_in_their_order_until_it_is_late_between_two_looks_at_the_sockets() -> None:
    rounds: list[Callable[[], None]] = []
    done: list[int] = []
    pacer = Pacer(rounds.append, is_late=lambda: len(done) % 3 == 0)

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
    pacer = Pacer(rounds.append, is_late=lambda: False)
    pacer.later(lambda: (done.append("first"), pacer.later(lambda: done.append("second")))[0])

    rounds.pop(0)()
    assert done == ["first"]
    rounds.pop(0)()
    assert done == ["first", "second"]
    assert not rounds


def test_a_step_that_fails_keeps_no_other_from_its_turn() -> None:
    rounds: list[Callable[[], None]] = []
    done: list[str] = []
    pacer = Pacer(rounds.append, is_late=lambda: False)

    def fails() -> None:
        raise ZeroDivisionError

    pacer.later(fails)
    pacer.later(lambda: done.append("next"))

    with pytest.raises(ZeroDivisionError):
        rounds.pop(0)()
    rounds.pop(0)()
    assert done == ["next"]
