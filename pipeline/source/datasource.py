"""The format `sluicegate`, for spark.read and spark.readStream.

    spark.dataSource.register(TopicSource)
    spark.read.format("sluicegate").option("kafka.bootstrap.servers", ...).option("subscribe", "orders").load()

A Python data source does not learn which columns a query uses, so the option `columns` names them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from sluicegate.pipeline.kafka.cluster import Cluster, OffsetRange, TopicPartition
from sluicegate.pipeline.source.arrow import columns_named, ddl_of
from sluicegate.pipeline.source.options import BadOption, Bound, SourceOptions, source_options
from sluicegate.pipeline.source.reading import read_rows
from sluicegate.protocol.messages.fetch import EARLIEST, LATEST, NOT_FOUND


def planned_ranges(cluster: Cluster, options: SourceOptions) -> list[OffsetRange]:
    """Return the ranges of a batch query, one for each partition. Raises BadOption, TopicTrouble, BrokerUnreachable."""
    partitions = cluster.partitions(options.topics)
    starts = offsets_at(cluster, options.start, partitions, committed=options.committed)
    ends = offsets_at(cluster, options.end, partitions, committed=options.committed)
    return [OffsetRange(p, starts[p], ends[p]) for p in partitions if starts[p] < ends[p]]


def offsets_at(
    cluster: Cluster, bound: Bound, partitions: Sequence[TopicPartition], *, committed: bool
) -> dict[TopicPartition, int]:
    """Return the bound's offset in each partition."""
    if bound.timestamp is not None:
        found = cluster.offsets(partitions, bound.timestamp, committed)
        behind = [p for p in partitions if found[p] == NOT_FOUND]  # all records are earlier
        return found | (cluster.offsets(behind, LATEST, committed) if behind else {})
    named = dict(bound.of)
    for partition in named:
        if partition not in partitions:
            raise BadOption(f"offsets are given for {partition}, which is not in the subscribed topics")
    wanted = {p: named.get(p, bound.offset) for p in partitions}
    for special in (EARLIEST, LATEST):
        special_partitions = [p for p, offset in wanted.items() if offset == special]
        if special_partitions:
            wanted |= cluster.offsets(special_partitions, special, committed)
    return wanted


def split(ranges: Iterable[OffsetRange], at_least: int | None) -> list[OffsetRange]:
    """Split the larger ranges into pieces of similar size, so that there are at least `at_least`."""
    whole = list(ranges)
    total = sum(r.end - r.start for r in whole)
    if at_least is None or len(whole) >= at_least or total == 0:
        return whole
    chunks: list[OffsetRange] = []
    for each in whole:
        size = each.end - each.start
        count = max(1, round(size / total * at_least))
        cuts = [each.start + size * i // count for i in range(count + 1)]
        chunks += [OffsetRange(each.of, a, b) for a, b in pairwise(cuts) if a < b]
    return chunks


_Offsets = dict[str, dict[str, int]]
"""{topic: {partition: offset}}, as in the checkpoints of Spark's own source."""


class TopicSource(DataSource):
    """See the module; the options are those of `sluicegate.pipeline.source.options`."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "sluicegate"

    def schema(self) -> str:
        """Return the requested columns."""
        return ddl_of(columns_named(self.options.get("columns")))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader for spark.read."""
        return TopicReader(source_options(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's name
        """Return the reader for spark.readStream, which starts at the end by default."""
        return TopicStreamReader(source_options(self.options, starts_at=LATEST))


@dataclass
class RangePartition(InputPartition):
    """The range that one task reads."""

    wanted: OffsetRange


class TopicReader(DataSourceReader):
    """Reads the records that exist when the query starts."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[RangePartition]:
        """Return one range for each partition, or as many as minPartitions."""
        with Cluster(self._options.bootstrap, self._options.settings) as cluster:
            ranges = planned_ranges(cluster, self._options)
        return [RangePartition(r) for r in split(ranges, self._options.min_partitions)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Return the records of one range; Spark passes None if there are no ranges."""
        return read_rows(self._options, partition.wanted) if isinstance(partition, RangePartition) else iter(())


class TopicStreamReader(DataSourceStreamReader):
    """Reads new records in batches; Spark stores the offsets in its checkpoint."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._planned: dict[TopicPartition, int] | None = None

    def initialOffset(self) -> _Offsets:  # noqa: N802  # Spark's name
        """Return the start of a query without a checkpoint."""
        with self._cluster() as cluster:
            partitions = cluster.partitions(self._options.topics)
            return _as_offsets(offsets_at(cluster, self._options.start, partitions, committed=self._options.committed))

    def latestOffset(self) -> _Offsets:  # noqa: N802  # Spark's name
        """Return the end of the next batch: the log's end, or maxOffsetsPerTrigger after the previous batch."""
        with self._cluster() as cluster:
            partitions = cluster.partitions(self._options.topics)
            ends = cluster.offsets(partitions, LATEST, self._options.committed)
            if self._options.max_offsets is not None:
                ends = self._limited(cluster, ends, self._options.max_offsets)
        self._planned = ends
        return _as_offsets(ends)

    def partitions(self, start: _Offsets, end: _Offsets) -> Sequence[RangePartition]:
        """Return one range for each partition with new records, or as many as minPartitions.

        After a restart Spark first plans the last batch of its checkpoint again, which gives the reader its position.
        """
        starts, ends = _as_places(start), _as_places(end)
        if self._planned is None:
            self._planned = ends
        new = [p for p in ends if p not in starts]
        if new:
            with self._cluster() as cluster:
                starts |= cluster.offsets(new, EARLIEST, self._options.committed)
        ranges = [OffsetRange(p, starts[p], ends[p]) for p in sorted(ends) if starts[p] < ends[p]]
        return [RangePartition(r) for r in split(ranges, self._options.min_partitions)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Return the records of one range; Spark passes None if there are no ranges."""
        return read_rows(self._options, partition.wanted) if isinstance(partition, RangePartition) else iter(())

    def commit(self, end: _Offsets) -> None:
        """Do nothing: Spark keeps the checkpoint."""

    def _cluster(self) -> Cluster:
        return Cluster(self._options.bootstrap, self._options.settings)

    def _limited(self, cluster: Cluster, ends: dict[TopicPartition, int], most: int) -> dict[TopicPartition, int]:
        """Limit the batch to `most` offsets, shared by what each partition has left, as Spark's own source does."""
        begun = self._planned if self._planned is not None else _as_places(self.initialOffset())
        new = [p for p in ends if p not in begun]
        begun = begun | (cluster.offsets(new, EARLIEST, self._options.committed) if new else {})
        left = {p: max(ends[p] - begun[p], 0) for p in ends}
        total = sum(left.values())
        if total <= most:
            return ends
        return {p: min(ends[p], begun[p] + -(-left[p] * most // total)) for p in ends}


def _as_offsets(places: dict[TopicPartition, int]) -> _Offsets:
    found: _Offsets = {}
    for partition, offset in sorted(places.items()):
        found.setdefault(partition.topic, {})[str(partition.partition)] = offset
    return found


def _as_places(offsets: _Offsets) -> dict[TopicPartition, int]:
    return {TopicPartition(t, int(p)): offset for t, its in offsets.items() for p, offset in its.items()}
