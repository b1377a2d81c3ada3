"""Defines the format `sluicegate`, for spark.read and spark.readStream.

    spark.dataSource.register(TopicSource)
    spark.read.format("sluicegate").option("kafka.bootstrap.servers", ...).option("subscribe", "orders").load()

A Python data source does not know which columns a query uses, so the option `columns` names them.
"""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from sluicegate.pipeline.kafka.cluster import KafkaCluster
from sluicegate.pipeline.source.arrow import ddl_of
from sluicegate.pipeline.source.options import (
    SourceOptions,
    check_batch_options,
    check_stream_options,
    source_options,
)
from sluicegate.pipeline.source.ranges import planned_ranges
from sluicegate.pipeline.source.stream import TaskRanges, TopicStreamReader, rows_of_task
from sluicegate.pipeline.source.task_ranges import ranges_of_tasks


class TopicSource(DataSource):
    """The data source (see the module's docstring). Its options are those of `sluicegate.pipeline.source.options`."""

    @classmethod
    def name(cls) -> str:
        """Return the name to pass to `format`."""
        return "sluicegate"

    def schema(self) -> str:
        """Return the requested columns. Raises BadOption, BadSetting and UnknownColumn when a query is defined."""
        return ddl_of(source_options(self.options, is_stream=True).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader for spark.read."""
        check_batch_options(self.options)
        return TopicReader(source_options(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's name
        """Return the reader for spark.readStream, which starts at the end by default. Raises BadOption."""
        check_stream_options(self.options)
        options = source_options(self.options, is_stream=True)
        if find_spec("pyspark.sql.streaming.datasource") is None:
            return TopicStreamReader(options)
        from sluicegate.pipeline.source.stream_limits import LimitedStreamReader  # noqa: PLC0415  # since Spark 4.2

        return LimitedStreamReader(options)


class TopicReader(DataSourceReader):
    """Reads the records that exist when the query starts."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[TaskRanges]:
        """Return the ranges of each task. Many small partitions share tasks."""
        options = self._options
        with KafkaCluster(options.bootstrap, options.settings) as cluster:
            ranges = planned_ranges(cluster, options)
        return [TaskRanges(its) for its in ranges_of_tasks(ranges, options.min_partitions, options.most_records)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Return the records in a task's ranges, range by range. Spark passes None if there are no ranges."""
        return rows_of_task(self._options, partition)
