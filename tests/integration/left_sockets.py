"""Client libraries leave sockets to the garbage collector when they are stopped while they connect."""

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def sockets_left_behind() -> Iterator[None]:
    """What the block's client leaves is collected here, so that no later test is blamed for it."""
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
