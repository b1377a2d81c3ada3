"""The moment as of which a stored batch is validated: its append time, or one given moment."""

import re
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np

from sluicegate.pipeline.jobs.profile.clock import Clock
from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.protocol.records.record_batch import LOG_APPEND_TIME

MomentOf = Callable[[StoredBatch], int]
"""Returns ms since 1970."""
_MILLISECONDS = re.compile(r"\d{12,15}")


class BadMoment(ValueError):
    """The value of --as-of is invalid; the text lists valid ones."""


def moment_from(text: str, now_ms: int) -> int:
    """Return --as-of in ms since 1970: `now`, such a number, or a date with or without a time (UTC by default). Raises
    BadMoment.
    """
    if text == "now":
        return now_ms
    if _MILLISECONDS.fullmatch(text):
        return int(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise BadMoment(
            f"--as-of: expected now, a date (2026-11-30), a moment (2026-11-30T12:00:00Z) or milliseconds since 1970, "
            f"found {text!r}"
        ) from None
    return int((found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp() * 1000)


def always(moment_ms: int) -> MomentOf:
    """Return the same moment for all batches."""
    return lambda _batch: moment_ms


def when_appended(clock: Clock) -> MomentOf:
    """Return the broker's time (LogAppendTime), or the partition's clock at the batch's last record: a batch is sent
    when its last record was added.
    """
    offsets, times = clock.offsets, clock.times

    def moment(batch: StoredBatch) -> int:
        header = batch.header
        if header is not None and header.attributes & LOG_APPEND_TIME:
            return header.max_timestamp
        behind = int(np.searchsorted(offsets, batch.last_offset, side="right"))
        if behind == 0:
            return int(times[0])
        before = int(times[behind - 1])
        if behind == len(offsets):
            return before
        gone = batch.last_offset - int(offsets[behind - 1])
        return before + (int(times[behind]) - before) * gone // int(offsets[behind] - offsets[behind - 1])

    return moment
