"""What a profile keeps: a row for each hour, damage, producer and distance of a partition."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.kafka.emptiness import DataLoss
from sluicegate.pipeline.kafka.fetching import stored_batches
from sluicegate.pipeline.kafka.kept_clusters import kept_cluster
from sluicegate.pipeline.profile.bounds import LADDER_MS
from sluicegate.pipeline.profile.damage import assess
from sluicegate.pipeline.profile.tally import Tally
from sluicegate.pipeline.source.decoding import BatchDecoder, BrokenRecords
from sluicegate.pipeline.source.options import SourceOptions
from sluicegate.protocol.records.record_batch import NO_TIMESTAMP

KEYS = (
    "topic",
    "partition",
    "hour",
    "damage",
    "producer_id",
    "codec",
    "timestamp_type",
    "ahead_beyond_ms",
    "behind_beyond_ms",
)
SUMS = ("records", "null_keys", "bytes", "batches", "stored_bytes")
DDL = (
    "topic string, partition int, hour bigint, damage string, producer_id bigint, codec string, timestamp_type int, "
    "ahead_beyond_ms bigint, behind_beyond_ms bigint, records bigint, null_keys bigint, bytes bigint, batches bigint, "
    "stored_bytes bigint, earliest bigint, latest bigint, gone_from bigint, gone_to bigint"
)
_GONE = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("gone_from", pa.int64()), ("gone_to", pa.int64())]
)
_NOTHING_IS_LARGE = 1 << 40
_STEPS = np.array([0, *LADDER_MS], np.int64)


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of a range: its tally, the offsets that were `gone` before they could be read ([first, end) of each
    stretch), and the bytes of its largest record, where one is as large as was asked about, else 0.
    """

    rows: pa.Table
    gone: tuple[tuple[int, int], ...]
    largest: int


def tally_of(
    options: SourceOptions,
    wanted: OffsetRange,
    now_ms: int,
    epoch_ms: int | None = None,
    large_bytes: int = _NOTHING_IS_LARGE,
) -> Reading:
    """Read a range; what retention deletes meanwhile is passed over and told. Raises BrokenRecords, TopicTrouble and
    BrokerUnreachable.
    """
    decoder, tally = BatchDecoder(), Tally(wanted.of, now_ms, epoch_ms)
    gone, largest, rest = [], 0, wanted
    try:
        with kept_cluster(options.bootstrap, options.settings) as cluster:
            while True:
                try:
                    for batch in stored_batches(cluster, rest, options.committed):
                        whole = batch.first_offset >= wanted.start and batch.last_offset < wanted.end
                        alike = decoder.add_up(batch) if whole and tally.expects_alike else None
                        if alike is None or not tally.add_alike(*alike, batch.last_offset):
                            tally.add(decoder.decode(batch), wanted.start, wanted.end)
                        if decoder.plain_bytes >= large_bytes:
                            largest = max(largest, decoder.decode(batch).largest_record)
                    break
                except DataLoss as loss:
                    gone.append((loss.first, loss.found))
                    rest = OffsetRange(wanted.of, loss.found, wanted.end)
    except BrokenRecords as error:
        raise BrokenRecords(f"{wanted.of}: {error}") from error
    return Reading(tally.table(), tuple(gone), largest)


def cells_of(
    wanted: OffsetRange, reading: Reading, now_ms: int, after_max_ms: int, before_max_ms: int | None
) -> pa.Table:
    """A whole partition's tally, assessed and added up, and a row without records for each stretch that is gone.

    `ahead_beyond_ms` is the largest of the ladder's bounds that records are further ahead of their append than, 0 where
    they are within all; `behind_beyond_ms` likewise. -1, no timestamp, is beyond none: no limit refuses it.
    """
    rows = assess(reading.rows, now_ms, after_max_ms, before_max_ms)
    judged = (rows["earliest"].to_numpy() != NO_TIMESTAMP) | (rows["latest"].to_numpy() != NO_TIMESTAMP)
    for side in ("ahead", "behind"):
        beyond = _beyond(np.where(judged, rows[side].to_numpy(), 0))
        rows = rows.append_column(f"{side}_beyond_ms", pa.array(beyond))
    grouped = rows.group_by(list(KEYS)).aggregate(
        [*((name, "sum") for name in SUMS), ("earliest", "min"), ("latest", "max")]
    )
    names = [*KEYS, *(f"{name}_sum" for name in SUMS), "earliest_min", "latest_max"]
    cells = grouped.select(names).rename_columns([*KEYS, *SUMS, "earliest", "latest"])
    told = [
        {"topic": wanted.of.topic, "partition": wanted.of.partition, "gone_from": first, "gone_to": end - 1}
        for first, end in reading.gone
    ]
    return pa.concat_tables([cells, pa.Table.from_pylist(told, _GONE)], promote_options="default")


def _beyond(distances: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(_STEPS[np.searchsorted(_STEPS[1:], distances, side="left")])
