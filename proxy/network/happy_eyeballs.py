"""Tries several brokers, starting the next attempt before the previous ones have succeeded (Happy Eyeballs, RFC 8305).

For the addresses of one host name the proxy uses `aiohappyeyeballs`, which races only TCP connections. For the brokers
of `upstream.bootstrap` that is not enough: a hanging broker, or a dead broker's load balancer, accepts a TCP connection
and never responds (tests/proxy/cluster/test_broker_client.py). So an attempt here succeeds only after the TLS handshake
or the Kafka response.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")
NEXT_BROKER_SECONDS = 0.5
"""The delay in seconds before the next broker is tried as well.

Most brokers respond sooner, even with TLS over a long distance. The delay is also shorter than the time that a first
batch waits for its topic's settings.
"""


class AllAttemptsFailed(Exception):
    """Every attempt failed. `errors` are in the order of the attempts."""

    def __init__(self, errors: Sequence[Exception]) -> None:
        super().__init__(*errors)
        self.errors = errors


async def happy_eyeballs(
    attempts: Sequence[Callable[[], Coroutine[Any, Any, T]]], delay_seconds: float, drop: Callable[[T], object]
) -> T:
    """Return the result of the first attempt that succeeds.

    Each attempt starts `delay_seconds` after the previous one, or as soon as that one fails. After a success the other
    attempts are cancelled. If one of them succeeds nevertheless, `drop` receives its result. Raises AllAttemptsFailed.
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
    """Return the first attempt that succeeded, or None if the next attempt may start.

    The next attempt may start once the newest one has failed or `seconds` have passed. If `seconds` is None, there is
    no next attempt, so all attempts are awaited.
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
