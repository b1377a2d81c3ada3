"""An asyncio client in a loop of its own."""

import asyncio
import gc
import warnings
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


def to_its_end(work: Coroutine[object, object, T]) -> T:
    """What `work` returns. aiokafka, stopped while it connects, leaves that socket to the garbage collector."""
    try:
        return asyncio.run(work)
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
