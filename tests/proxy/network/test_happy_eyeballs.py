"""Of several simultaneous attempts, the first that succeeds wins, a hanging one delays no other, and none is left
running."""

import asyncio
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any

import pytest

from sluicegate.proxy.network.happy_eyeballs import AllAttemptsFailed, happy_eyeballs

_LONG = 60.0
_SHORT = 0.05
Attempt = Callable[[], Coroutine[Any, Any, str]]


class ScriptedAttempts:
    """The outcome of each attempt, by name."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.given_up: list[str] = []
        self.dropped: list[str] = []

    def successful_attempt(self, name: str) -> Attempt:
        async def attempt() -> str:
            self.begun.append(name)
            return name

        return attempt

    def failing_attempt(self, name: str) -> Attempt:
        async def attempt() -> str:
            self.begun.append(name)
            raise OSError(name)

        return attempt

    def silent_attempt(self, name: str) -> Attempt:
        async def attempt() -> str:
            self.begun.append(name)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.given_up.append(name)
                raise
            return name

        return attempt

    def late_successful_attempt(self, name: str) -> Attempt:
        """Succeed even after the attempt was cancelled."""

        async def attempt() -> str:
            self.begun.append(name)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return name
            return name

        return attempt

    async def run_race(self, *attempts: Attempt, after: float = _LONG) -> str:
        return await asyncio.wait_for(happy_eyeballs(attempts, after, self.dropped.append), _LONG / 2)


@pytest.fixture
def scripted_attempts() -> ScriptedAttempts:
    return ScriptedAttempts()


async def test_no_second_attempt_after_the_first_succeeds(scripted_attempts: ScriptedAttempts) -> None:
    assert (
        await scripted_attempts.run_race(
            scripted_attempts.successful_attempt("a"), scripted_attempts.successful_attempt("b")
        )
        == "a"
    )
    assert scripted_attempts.begun == ["a"]


async def test_the_next_address_is_tried_while_the_first_does_not_respond(scripted_attempts: ScriptedAttempts) -> None:
    began = monotonic()

    assert (
        await scripted_attempts.run_race(
            scripted_attempts.silent_attempt("a"),
            scripted_attempts.successful_attempt("b"),
            scripted_attempts.successful_attempt("c"),
            after=_SHORT,
        )
        == "b"
    )

    assert monotonic() - began >= _SHORT
    await asyncio.sleep(0)
    assert (scripted_attempts.begun, scripted_attempts.given_up) == (["a", "b"], ["a"])


async def test_the_next_attempt_begins_at_once_after_a_failure(scripted_attempts: ScriptedAttempts) -> None:
    assert (
        await scripted_attempts.run_race(
            scripted_attempts.silent_attempt("a"),
            scripted_attempts.failing_attempt("b"),
            scripted_attempts.successful_attempt("c"),
            after=_SHORT,
        )
        == "c"
    )
    assert (
        await scripted_attempts.run_race(
            scripted_attempts.failing_attempt("d"), scripted_attempts.successful_attempt("e")
        )
        == "e"
    )


async def test_an_earlier_attempt_may_succeed_after_the_last_has_failed(scripted_attempts: ScriptedAttempts) -> None:
    comes = asyncio.Event()

    async def succeed_late() -> str:
        await comes.wait()
        return "late"

    async def fail_last() -> str:
        comes.set()
        raise OSError

    assert await scripted_attempts.run_race(succeed_late, fail_last, after=_SHORT) == "late"


@pytest.mark.parametrize("count", [0, 1, 2, 3])
async def test_errors_of_all_attempts_are_reported(scripted_attempts: ScriptedAttempts, count: int) -> None:
    names = ["a", "b", "c"][:count]

    with pytest.raises(AllAttemptsFailed) as raised:
        await scripted_attempts.run_race(*(scripted_attempts.failing_attempt(name) for name in names))

    assert list(map(str, raised.value.errors)) == names


async def test_connection_that_loses_the_race_is_closed(scripted_attempts: ScriptedAttempts) -> None:
    assert (
        await scripted_attempts.run_race(
            scripted_attempts.late_successful_attempt("a"), scripted_attempts.successful_attempt("b"), after=_SHORT
        )
        == "b"
    )

    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert scripted_attempts.dropped == ["a"]


async def test_a_cancelled_attempt_leaves_no_connection_open(scripted_attempts: ScriptedAttempts) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(4 * _SHORT):
            await scripted_attempts.run_race(
                scripted_attempts.silent_attempt("a"), scripted_attempts.late_successful_attempt("b"), after=_SHORT
            )

    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (scripted_attempts.given_up, scripted_attempts.dropped) == (["a"], ["b"])
