"""What a profile keeps: a row for each hour, damage, producer and distance of a partition."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.kafka.cluster import Cluster, OffsetRange
from pipeline.kafka.fetching import stored_batches
from pipeline.profile.bounds import LADDER_MS
from pipeline.profile.damage import assess
from pipeline.profile.tally import Tally
from pipeline.source.decoding import BatchDecoder, BrokenRecords
from pipeline.source.options import SourceOptions

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
    "stored_bytes bigint, earliest bigint, latest bigint"
)
_STEPS = np.array([0, *LADDER_MS], np.int64)


def tally_of(options: SourceOptions, wanted: OffsetRange, now_ms: int) -> pa.Table:
    """The tally of a range. Raises BrokenRecords, DataLoss, TopicTrouble and BrokerUnreachable."""
    cluster = Cluster(options.bootstrap, options.settings)
    decoder, tally = BatchDecoder(), Tally(wanted.of, now_ms)
    try:
        for batch in stored_batches(cluster, wanted, options.committed):
            whole = batch.first_offset >= wanted.start and batch.last_offset < wanted.end
            alike = decoder.add_up(batch) if whole else None
            if alike is None or not tally.add_alike(*alike, batch.last_offset):
                tally.add(decoder.decode(batch), wanted.start, wanted.end)
    except BrokenRecords as error:
        raise BrokenRecords(f"{wanted.of}: {error}") from error
    finally:
        cluster.close()
    return tally.table()


def cells_of(tally: pa.Table, now_ms: int, after_max_ms: int, before_max_ms: int | None) -> pa.Table:
    """A whole partition's tally, assessed and added up. `ahead_beyond_ms` is the largest of the ladder's bounds that
    records are further ahead of their append than, 0 where they are within all; `behind_beyond_ms` likewise.
    """
    rows = assess(tally, now_ms, after_max_ms, before_max_ms)
    rows = rows.append_column("ahead_beyond_ms", pa.array(_beyond(rows["ahead"].to_numpy())))
    rows = rows.append_column("behind_beyond_ms", pa.array(_beyond(rows["behind"].to_numpy())))
    grouped = rows.group_by(list(KEYS)).aggregate(
        [*((name, "sum") for name in SUMS), ("earliest", "min"), ("latest", "max")]
    )
    names = [*KEYS, *(f"{name}_sum" for name in SUMS), "earliest_min", "latest_max"]
    return grouped.select(names).rename_columns([*KEYS, *SUMS, "earliest", "latest"])


def _beyond(distances: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(_STEPS[np.searchsorted(_STEPS[1:], distances, side="left")])
