"""The format `sluicegate-tally`: what `pipeline.profile.tally` makes of topics, with the options of the raw source.

Records are added up where they are read, so nothing of theirs passes through Spark.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pipeline.kafka.cluster import Cluster, OffsetRange
from pipeline.kafka.fetching import stored_batches
from pipeline.profile.tally import DDL, Tally
from pipeline.source.datasource import RangePartition, TopicReader
from pipeline.source.decoding import BatchDecoder, BrokenRecords
from pipeline.source.options import SourceOptions, source_options

_NOW_OPTION = "now"


class TallySource(DataSource):
    """`now`: the moment, in ms since the epoch, that kinds of timestamps are told by."""

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "sluicegate-tally"

    def schema(self) -> str:
        """Always the same."""
        return DDL

    def reader(self, schema: StructType) -> DataSourceReader:
        """For spark.read."""
        options = {name: value for name, value in self.options.items() if name.lower() != _NOW_OPTION}
        return TallyReader(source_options(options), int(self.options[_NOW_OPTION]))


class TallyReader(DataSourceReader):
    """One task for each range of offsets."""

    def __init__(self, options: SourceOptions, now_ms: int) -> None:
        self._options = options
        self._now_ms = now_ms

    def partitions(self) -> Sequence[RangePartition]:
        """As the raw source plans them."""
        return TopicReader(self._options).partitions()

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The rows of one range; Spark asks for None where there are no ranges."""
        if not isinstance(partition, RangePartition):
            return
        cluster = Cluster(self._options.bootstrap, self._options.settings)
        try:
            yield from _tally(cluster, self._options, partition.wanted, self._now_ms)
        finally:
            cluster.close()


def _tally(cluster: Cluster, options: SourceOptions, wanted: OffsetRange, now_ms: int) -> Iterator[pa.RecordBatch]:
    decoder, tally = BatchDecoder(), Tally(wanted.of, now_ms)
    for batch in stored_batches(cluster, wanted, options.committed):
        try:
            whole = batch.first_offset >= wanted.start and batch.last_offset < wanted.end
            alike = decoder.add_up(batch) if whole else None
            if alike is None or not tally.add_alike(*alike, batch.last_offset):
                tally.add(decoder.decode(batch), wanted.start, wanted.end)
        except BrokenRecords as error:
            raise BrokenRecords(f"{wanted.of}: {error}") from error
        yield from tally.closed()
    yield from tally.rest()
