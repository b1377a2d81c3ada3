"""Reads a stream of new records in batches. Spark stores the positions in its checkpoint.

Since 4.2, Spark passes the limit of each batch and, with the trigger availableNow, asks for the end of the query
(`stream_limits`). Earlier releases do neither. They run the triggers once and availableNow as a single batch, and ask
for its end in the same way, so maxOffsetsPerTrigger requires the option `trigger` there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import __version__ as spark_version
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from sluicegate.pipeline.kafka.cluster import KafkaCluster, TopicPartition
from sluicegate.pipeline.kafka.cluster_pool import pooled_cluster
from sluicegate.pipeline.source.bounds import BadOption
from sluicegate.pipeline.source.losses import (
    Position,
    StoredOffsets,
    existing_partitions,
    is_recreated,
    log_states,
    report_losses,
    surviving_ranges,
)
from sluicegate.pipeline.source.options import SourceOptions, Trigger
from sluicegate.pipeline.source.ranges import Offsets, checked_starts
from sluicegate.pipeline.source.reading import read_rows
from sluicegate.pipeline.source.task_ranges import Ranges, ranges_of_tasks
from sluicegate.pipeline.source.tasks import begin_task
from sluicegate.protocol.messages.fetch import EARLIEST, LATEST


@dataclass
class TaskRanges(InputPartition):
    """The ranges that one task reads."""

    ranges: Ranges


def rows_of_task(options: SourceOptions, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
    """Yield the records in a task's ranges, range by range; no records for None."""
    if isinstance(partition, TaskRanges):
        begin_task()
        for wanted in partition.ranges:
            yield from read_rows(options, wanted)


class TopicStream(DataSourceStreamReader):
    """The base of the stream readers for all Spark releases."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def initialOffset(self) -> StoredOffsets:  # noqa: N802  # Spark's name
        """Return the start of a query that has no checkpoint."""
        options = self._options
        with pooled_cluster(options.bootstrap, options.settings) as cluster:
            partitions, ids = existing_partitions(cluster, options.subscription, must_exist=True)
            return Position(checked_starts(cluster, options, partitions), ids).stored()

    def partitions(self, start: StoredOffsets, end: StoredOffsets) -> Sequence[TaskRanges]:
        """Return the ranges of each task: all partitions with new records.

        Raises LostOffsets if records between the positions no longer exist.
        """
        if start == end:  # Spark passes the position of a restarted query this way
            return []
        options = self._options
        with pooled_cluster(options.bootstrap, options.settings) as cluster:
            now = log_states(cluster, options.subscription, must_exist=False)
        ranges, lost = surviving_ranges(Position.from_stored(start), Position.from_stored(end), now)
        report_losses(lost, must_fail=options.fail_on_data_loss)
        return [TaskRanges(its) for its in ranges_of_tasks(ranges, options.min_partitions, options.most_records)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Return the records in a task's ranges, range by range. Spark passes None if there are no ranges."""
        return rows_of_task(self._options, partition)

    def commit(self, end: StoredOffsets) -> None:
        """Do nothing, because Spark stores the checkpoint."""

    def log_end(self) -> Position:
        """Return the current end of all partitions. Raises TopicTrouble and BrokerUnreachable."""
        options = self._options
        with pooled_cluster(options.bootstrap, options.settings) as cluster:
            partitions, ids = existing_partitions(cluster, options.subscription, must_exist=False)
            return Position(cluster.offsets(partitions, LATEST, options.committed), ids)

    def batch_end(self, begun: Position, end: Position, most: int | None) -> Position:
        """Return the end of the batch that begins at `begun`: `end`, or an earlier position if `most` limits the batch.

        The batch contains at most `most` offsets. As in Spark's own source, each partition gets a share in proportion
        to its unread records.
        """
        options = self._options
        known = {of: at for of, at in begun.offsets.items() if not is_recreated(begun.ids, end.ids, of.topic)}
        with pooled_cluster(options.bootstrap, options.settings) as cluster:
            ends = {**end.offsets, **_still_there(cluster, known, end.offsets)}
            new = [of for of in ends if of not in known]
            if most is not None and new:
                known |= cluster.offsets(new, EARLIEST, options.committed)
        return Position(ends if most is None else _limited(known, ends, most), end.ids)


class TopicStreamReader(TopicStream):
    """Reads streams on Spark releases before 4.2, which do not pass the position at which a batch begins."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        self._reached: Position | None = None

    def latestOffset(self) -> StoredOffsets:  # noqa: N802  # Spark's name
        """Return the end of the next batch: the log's end, or maxOffsetsPerTrigger after the previous batch."""
        most, begun = self._most_offsets(), self._reached
        if begun is None:
            begun = Position({}) if most is None else Position.from_stored(self.initialOffset())
        self._reached = self.batch_end(begun, self.log_end(), most)
        return self._reached.stored()

    def partitions(self, start: StoredOffsets, end: StoredOffsets) -> Sequence[TaskRanges]:
        """Return the ranges as `TopicStream` does. After a restart, this call also gives the reader its position."""
        if self._reached is None:
            self._reached = Position.from_stored(end)
        return super().partitions(start, end)

    def _most_offsets(self) -> int | None:
        most, trigger = self._options.max_offsets, self._options.trigger
        if most is not None and trigger is None:
            raise BadOption(
                f"maxOffsetsPerTrigger: Spark {spark_version} does not state a query's trigger, and with once or "
                "availableNow the query would end after one batch of that size. Add the option trigger=processingTime "
                "if the trigger has an interval; for once and availableNow, which are one batch here, omit "
                "maxOffsetsPerTrigger, or use Spark 4.2 or later"
            )
        return most if trigger is Trigger.PROCESSING_TIME else None


def _still_there(cluster: KafkaCluster, begun: Offsets, ends: Offsets) -> dict[TopicPartition, int]:
    """Return the start of each partition whose end is earlier only for readers of committed records.

    This prevents a stream that reads uncommitted records from going back.
    """
    behind = [of for of, end in ends.items() if end < begun.get(of, 0)]
    written = cluster.offsets(behind, LATEST, committed=False) if behind else {}
    return {of: begun[of] for of in behind if written[of] >= begun[of]}


def _limited(begun: Offsets, ends: Offsets, most: int) -> Offsets:
    left = {of: max(ends[of] - begun[of], 0) for of in ends}
    total = sum(left.values())
    if total <= most:
        return ends
    return {of: min(ends[of], begun[of] + -(-left[of] * most // total)) for of in ends}
