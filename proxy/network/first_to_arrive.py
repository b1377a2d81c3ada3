"""Several ways to one end, each begun a moment after the one before it, or as soon as that one has failed: what arrives
first is taken. As RFC 8305 has it for the addresses of one name: one that says nothing keeps nobody waiting.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


class NoneArrived(Exception):
    """Every attempt has failed; `errors` in the order in which they were begun."""

    def __init__(self, errors: Sequence[Exception]) -> None:
        super().__init__(*errors)
        self.errors = errors


async def first_to_arrive(
    attempts: Sequence[Callable[[], Coroutine[Any, Any, T]]], after_seconds: float, drop: Callable[[T], object]
) -> T:
    """What the first that does not fail has brought. The others are given up, and what they bring all the same is
    dropped. Raises NoneArrived.
    """
    if len(attempts) == 1:
        try:
            return await attempts[0]()
        except Exception as error:
            raise NoneArrived([error]) from error
    begun: list[asyncio.Task[T]] = []
    try:
        for left, attempt in zip(reversed(range(len(attempts))), attempts, strict=True):
            begun.append(asyncio.create_task(attempt()))
            arrived = await _arrival(begun, after_seconds if left else None)
            if arrived is not None:
                begun.remove(arrived)
                return arrived.result()
        raise NoneArrived([failed for each in begun if isinstance(failed := each.exception(), Exception)])
    finally:
        for each in begun:
            each.cancel()
            each.add_done_callback(partial(_drop, drop))


async def _arrival(begun: Sequence[asyncio.Task[T]], seconds: float | None) -> asyncio.Task[T] | None:
    """The first that has arrived; None when the next may begin: the newest has failed, or so long has passed. With
    `seconds` None there is no next, and all of them are waited for.
    """
    loop = asyncio.get_running_loop()
    end = None if seconds is None else loop.time() + seconds
    while True:
        arrived = next((each for each in begun if each.done() and each.exception() is None), None)
        waiting = [each for each in begun if not each.done()]
        if arrived is not None or not waiting:
            return arrived
        left = None if end is None else end - loop.time()
        if left is not None and (left <= 0 or begun[-1].done()):
            return None
        await asyncio.wait(waiting, timeout=left, return_when=asyncio.FIRST_COMPLETED)


def _drop(drop: Callable[[T], object], ended: asyncio.Task[T]) -> None:
    if not ended.cancelled() and ended.exception() is None:
        drop(ended.result())
