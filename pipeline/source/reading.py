"""What one task does: a range of offsets in, Arrow record batches out."""

import warnings
from collections.abc import Iterator

import pyarrow as pa

from sluicegate.pipeline.kafka.cluster import Cluster, OffsetRange
from sluicegate.pipeline.kafka.emptiness import DataLoss
from sluicegate.pipeline.kafka.fetching import stored_batches
from sluicegate.pipeline.kafka.kept_clusters import kept_cluster
from sluicegate.pipeline.source.arrow import ArrowRows
from sluicegate.pipeline.source.decoding import BatchDecoder, BrokenRecords
from sluicegate.pipeline.source.options import SourceOptions
from sluicegate.pipeline.source.task_start import begin_task

_ROWS = 64 * 1024
_BYTES = 16 << 20


def read_rows(options: SourceOptions, wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
    """The records of a range, in their order.

    Raises DataLoss (unless it is allowed), BrokenRecords, TopicTrouble and BrokerUnreachable.
    """
    begin_task()
    with kept_cluster(options.bootstrap, options.settings) as cluster:
        while True:
            try:
                yield from _rows(cluster, options, wanted)
                return
            except DataLoss as loss:
                if options.fail_on_data_loss:
                    raise
                warnings.warn(f"{loss}; going on from there, because failOnDataLoss is false", stacklevel=2)
                wanted = OffsetRange(wanted.of, loss.found, wanted.end)


def count_rows(options: SourceOptions, wanted: OffsetRange) -> int:
    """How many records a range holds, by what batches say of themselves; raises what `read_rows` does."""
    decoder, count = BatchDecoder(), 0
    with kept_cluster(options.bootstrap, options.settings) as cluster:
        for batch in stored_batches(cluster, wanted, options.committed):
            if batch.header is not None and wanted.start <= batch.first_offset and batch.last_offset < wanted.end:
                count += batch.header.record_count
            else:
                offsets = decoder.decode(batch).offset
                count += int(((offsets >= wanted.start) & (offsets < wanted.end)).sum())
    return count


def _rows(cluster: Cluster, options: SourceOptions, wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
    decoder, rows = BatchDecoder(), ArrowRows(wanted.of, options.columns)
    for batch in stored_batches(cluster, wanted, options.committed):
        try:
            decoded = decoder.decode(batch)
        except BrokenRecords as error:
            raise BrokenRecords(f"{wanted.of}: {error}") from error
        rows.add(decoded, wanted.start, wanted.end)
        if rows.rows >= _ROWS or rows.bytes >= _BYTES:
            yield rows.take()
    if rows.rows:
        yield rows.take()
