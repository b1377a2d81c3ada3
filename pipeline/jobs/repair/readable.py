"""That a repair is done when its readers see it: a transaction is committed before all of its partitions show that.

The coordinator answers when the decision is written down; the partitions hear of it afterwards (KIP-98). Whoever
compares the topics meanwhile finds records missing.
"""

import time
from collections.abc import Callable

from sluicegate.pipeline.jobs.repair.record_writer import CannotWrite

_PATIENCE_SECONDS = 60.0
_PAUSE_SECONDS = 0.2


def wait_until_readable(held_back: Callable[[], list[str]]) -> None:
    """`held_back`: a sentence for each partition of which readers do not see all yet.

    Raises CannotWrite where none is added to those that they do see for a minute.
    """
    fewest, end = None, 0.0
    while told := held_back():
        if fewest is None or len(told) < fewest:
            fewest, end = len(told), time.monotonic() + _PATIENCE_SECONDS
        elif time.monotonic() > end:
            raise CannotWrite(
                f"all is written and committed, but after {_PATIENCE_SECONDS:g} s readers do not see all of "
                f"{len(told):,} partitions: {told[0]}. Is it somebody else's? End it, and start again, which writes "
                "nothing twice"
            )
        time.sleep(_PAUSE_SECONDS)  # nothing announces that a partition shows what was committed
