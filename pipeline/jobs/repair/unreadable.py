"""The bytes of batches that cannot be read, as they lie on the broker: nothing else of them can be kept."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sluicegate.pipeline.jobs.repair.plan import Plan
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.kafka.emptiness import DataLoss
from sluicegate.pipeline.kafka.fetching import stored_batches
from sluicegate.pipeline.kafka.kept_clusters import kept_cluster
from sluicegate.pipeline.source.decoding import BatchDecoder, BrokenRecords
from sluicegate.pipeline.source.options import source_options
from sluicegate.pipeline.source.tasks import over
from sluicegate.pipeline.topics import Topics

DDL = "topic string, partition int, first_offset bigint, last_offset bigint, why string, stored binary"


def unreadable_batches(spark: SparkSession, topics: Topics, plan: Plan) -> DataFrame:
    """A row for each of a plan's ranges, read once more; what retention has taken since is not among them."""
    options = source_options(topics.options)

    def of_stretch(wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
        decoder = BatchDecoder()
        with kept_cluster(options.bootstrap, options.settings) as cluster:
            try:
                for batch in stored_batches(cluster, wanted, options.committed):
                    try:
                        decoder.decode(batch)
                    except BrokenRecords as error:
                        place = [wanted.of.topic, wanted.of.partition, batch.first_offset, batch.last_offset]
                        yield _row([*place, str(error), bytes(batch.data[batch.start : batch.end])])
            except DataLoss:
                return

    stretches = [
        OffsetRange(each.source.of, its.first_offset, its.last_offset + 1)
        for each in plan.partitions
        for its in each.contents.unreadable
    ]
    if not stretches:
        return spark.createDataFrame([], DDL)
    return over(spark, stretches, lambda stretch: stretch.size, of_stretch, DDL)


def _row(values: list[object]) -> pa.RecordBatch:
    kinds = (pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.string(), pa.binary())
    names = [column.split()[0] for column in DDL.split(", ")]
    arrays = [pa.array([value], kind) for value, kind in zip(values, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names)
