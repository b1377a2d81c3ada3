"""Runs an asyncio client in its own event loop."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from tests.integration.left_sockets import sockets_left_behind

T = TypeVar("T")


def run_and_collect_sockets(work: Coroutine[object, object, T]) -> T:
    """Return the result of `work`, and collect the sockets that aiokafka leaves open."""
    with sockets_left_behind():
        return asyncio.run(work)
