"""Resolves start and end offsets, and splits ranges for tasks."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from sluicegate.pipeline.kafka.cluster import Cluster, OffsetRange, TopicPartition
from sluicegate.pipeline.source.options import BadOption, Bound, SourceOptions
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
