"""Finds a rejected batch's bad records a second time, with the bounds and the time of its validation."""

from sluicegate.protocol.records import scan
from sluicegate.protocol.records.record_batch import RecordBatch
from sluicegate.validation.findings import scan_checks_of
from sluicegate.validation.timestamps import TimeWindow
from sluicegate.validation.verdict import Reason


class BoundCheck:
    """A callable that returns why a record is bad, or None if it is good.

    Its arguments are the record's index, timestamp (ms) and key size; a negative size means a null key. `window` is
    None if the broker sets timestamps.
    """

    def __init__(self, batch: RecordBatch, window: TimeWindow | None, compacted: bool) -> None:
        look_for = scan_checks_of(batch, window, compacted)
        self._window = window
        self._needs_key = bool(look_for & scan.NULL_KEY)
        self._looks_at_times = bool(look_for & (scan.OUT_OF_WINDOW | scan.EVERY_RECORD))
        self._every_record = bool(look_for & scan.EVERY_RECORD)

    def __call__(self, _index: int, time: int, key_size: int) -> Reason | None:
        if self._needs_key and key_size < 0:
            return Reason.NULL_KEY
        breach = self._window.breach(time) if self._looks_at_times and self._window is not None else None
        return breach or (Reason.LOG_APPEND_TIME if self._every_record else None)
