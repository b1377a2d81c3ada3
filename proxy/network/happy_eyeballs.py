"""Try several brokers: the next one while the first does not respond (Happy Eyeballs, RFC 8305).

For the addresses of one name the proxy uses `aiohappyeyeballs`, which races TCP connections only. For the brokers of
`upstream.bootstrap` a TCP connection is not enough: a broker that hangs, or the load balancer of a dead broker, accepts
it and never responds (tests/proxy/cluster/test_broker_client.py). An attempt here succeeds after the TLS handshake or
the Kafka response.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")
NEXT_BROKER_SECONDS = 0.5
"""Delay before the next broker is tried as well: longer than most brokers take, including TLS over a long distance, and
shorter than a first batch waits for its topic's settings.
"""


class AllAttemptsFailed(Exception):
    """Every attempt failed; `errors` are in the order of the attempts."""

    def __init__(self, errors: Sequence[Exception]) -> None:
        super().__init__(*errors)
        self.errors = errors


async def happy_eyeballs(
    attempts: Sequence[Callable[[], Coroutine[Any, Any, T]]], delay_seconds: float, drop: Callable[[T], object]
) -> T:
    """Return the result of the first attempt that succeeds. Raises AllAttemptsFailed.

    Each attempt starts `delay_seconds` after the one before, or as soon as that one fails. The others are cancelled;
    `drop` receives the result of an attempt that succeeds nevertheless.
    """
    if len(attempts) == 1:
        try:
            return await attempts[0]()
        except Exception as error:
            raise AllAttemptsFailed([error]) from error
    started: list[asyncio.Task[T]] = []
    try:
        for left, attempt in zip(reversed(range(len(attempts))), attempts, strict=True):
            started.append(asyncio.create_task(attempt()))
            succeeded = await _first_success(started, delay_seconds if left else None)
            if succeeded is not None:
                started.remove(succeeded)
                return succeeded.result()
        raise AllAttemptsFailed([failed for each in started if isinstance(failed := each.exception(), Exception)])
    finally:
        for each in started:
            each.cancel()
            each.add_done_callback(partial(_drop, drop))


async def _first_success(started: Sequence[asyncio.Task[T]], seconds: float | None) -> asyncio.Task[T] | None:
    """Return the first attempt that succeeded; None if the next one may start: the newest failed, or `seconds` passed.
    With `seconds` None there is no next one, and it waits for all.
    """
    loop = asyncio.get_running_loop()
    end = None if seconds is None else loop.time() + seconds
    while True:
        succeeded = next((each for each in started if each.done() and each.exception() is None), None)
        waiting = [each for each in started if not each.done()]
        if succeeded is not None or not waiting:
            return succeeded
        left = None if end is None else end - loop.time()
        if left is not None and (left <= 0 or started[-1].done()):
            return None
        await asyncio.wait(waiting, timeout=left, return_when=asyncio.FIRST_COMPLETED)


def _drop(drop: Callable[[T], object], ended: asyncio.Task[T]) -> None:
    if not ended.cancelled() and ended.exception() is None:
        drop(ended.result())
