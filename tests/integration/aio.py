"""An asyncio client in a loop of its own."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from tests.integration.left_sockets import sockets_left_behind

T = TypeVar("T")


def to_its_end(work: Coroutine[object, object, T]) -> T:
    """What `work` returns; aiokafka's unclosed sockets are collected."""
    with sockets_left_behind():
        return asyncio.run(work)
