"""Reads an offset range as Arrow record batches, in one task."""

import warnings
from collections.abc import Iterator

import pyarrow as pa

from sluicegate.pipeline.kafka.cluster import KafkaCluster, OffsetRange, TopicPartition
from sluicegate.pipeline.kafka.cluster_pool import pooled_cluster
from sluicegate.pipeline.kafka.fetching import DataLoss, stored_batches
from sluicegate.pipeline.source.arrow import ArrowRows
from sluicegate.pipeline.source.decoding import BatchDecoder, BrokenRecords, Unreadable, unreadable
from sluicegate.pipeline.source.options import SourceOptions

_ROWS = 64 * 1024
_BYTES = 16 << 20
_WAY_ON = "--skip-unreadable (failOnUnreadable=false of the raw source) skips unreadable batches"


def read_rows(options: SourceOptions, wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
    """Yield the records of a range in order.

    Raises DataLoss (unless the options allow it), BrokenRecords, TopicTrouble and BrokerUnreachable.
    """
    with pooled_cluster(options.bootstrap, options.settings) as cluster:
        while True:
            try:
                yield from _rows(cluster, options, wanted)
                return
            except DataLoss as loss:
                if options.fail_on_data_loss:
                    raise
                warnings.warn(f"{loss}; continuing there, because failOnDataLoss is false", stacklevel=2)
                wanted = OffsetRange(wanted.of, loss.found, wanted.end)


def count_rows(options: SourceOptions, wanted: OffsetRange) -> int:
    """Return how many records `read_rows` yields. Raises the errors of `read_rows`.

    If unreadable batches end the reading, the counts in batch headers are trusted.
    """
    decoder, count = BatchDecoder(), 0
    with pooled_cluster(options.bootstrap, options.settings) as cluster:
        for batch in stored_batches(cluster, wanted, options.committed):
            trusted = batch.header if options.fail_on_unreadable else None
            if trusted is not None and wanted.start <= batch.first_offset and batch.last_offset < wanted.end:
                count += trusted.record_count
            else:
                try:
                    offsets = decoder.decode(batch).offset
                except BrokenRecords as error:
                    _pass_over(unreadable(batch, error), wanted.of, options)
                    continue
                count += int(((offsets >= wanted.start) & (offsets < wanted.end)).sum())
    return count


def _rows(cluster: KafkaCluster, options: SourceOptions, wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
    decoder, rows = BatchDecoder(), ArrowRows(wanted.of, options.columns)
    for batch in stored_batches(cluster, wanted, options.committed):
        try:
            rows.add(decoder.decode(batch), wanted.start, wanted.end)
        except BrokenRecords as error:
            _pass_over(unreadable(batch, error), wanted.of, options)
        if rows.rows >= _ROWS or rows.bytes >= _BYTES:
            yield rows.take()
    if rows.rows:
        yield rows.take()


def _pass_over(found: Unreadable, of: TopicPartition, options: SourceOptions) -> None:
    """Warn about an unreadable batch. Raise BrokenRecords if unreadable batches end the reading."""
    if options.fail_on_unreadable:
        raise BrokenRecords(f"{of}: {found}; {_WAY_ON}")
    warnings.warn(f"{of}: {found}; continuing after it, because failOnUnreadable is false", stacklevel=2)
