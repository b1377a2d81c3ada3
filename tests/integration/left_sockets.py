"""Client libraries that are stopped while they connect leave their sockets to the garbage collector."""

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def sockets_left_behind() -> Iterator[None]:
    """Collect the sockets of the block's client here, so that no later test fails for them."""
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
