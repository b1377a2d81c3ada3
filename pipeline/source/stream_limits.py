"""Reads streams with the limits that Spark states since 4.2. Earlier releases cannot import this module."""

from typing import Any

from pyspark.sql.streaming.datasource import (  # since Spark 4.2
    ReadAllAvailable,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from sluicegate.pipeline.source.losses import Position, StoredOffsets
from sluicegate.pipeline.source.options import SourceOptions
from sluicegate.pipeline.source.stream import TopicStream


class LimitedStreamReader(TopicStream, SupportsTriggerAvailableNow):
    """Limits a batch as the trigger requires: to maxOffsetsPerTrigger, or not at all with the trigger once.

    With availableNow a query ends at the log's end when the query started.
    """

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        self._last: Position | None = None
        self._newest: Position | None = None

    def getDefaultReadLimit(self) -> Any:  # noqa: N802  # Spark's name
        """Return maxOffsetsPerTrigger as a limit."""
        most = self._options.max_offsets
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's name
        """Remember the log's end, which ends the query."""
        self._last = self.log_end()

    def latestOffset(self, start: StoredOffsets, limit: Any) -> StoredOffsets:  # type: ignore[override, unused-ignore]  # noqa: N802
        """Return the end of the batch that begins at `start`."""
        self._newest = self._last if self._last is not None else self.log_end()
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return self.batch_end(Position.from_stored(start), self._newest, most).stored()

    def reportLatestOffset(self) -> StoredOffsets | None:  # noqa: N802  # Spark's name
        """Return the end of all partitions for the query's progress."""
        return None if self._newest is None else self._newest.stored()
