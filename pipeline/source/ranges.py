"""Plans the offset ranges that a batch query reads."""

from collections.abc import Mapping, Sequence

from sluicegate.pipeline.kafka.cluster import KafkaCluster, OffsetRange, TopicPartition
from sluicegate.pipeline.source.bounds import BadOption, offsets_at
from sluicegate.pipeline.source.losses import report_losses
from sluicegate.pipeline.source.options import SourceOptions
from sluicegate.protocol.messages.fetch import EARLIEST, LATEST

Offsets = Mapping[TopicPartition, int]


def planned_ranges(cluster: KafkaCluster, options: SourceOptions) -> list[OffsetRange]:
    """Return the ranges of a batch query, one for each partition.

    Raises BadOption, LostOffsets, TopicTrouble and BrokerUnreachable.
    """
    partitions = options.subscription.partitions(cluster)
    starts = checked_starts(cluster, options, partitions)
    ends = _checked_ends(cluster, options, partitions)
    for of in partitions:
        if starts[of] > ends[of]:
            raise BadOption(
                f"{options.start.option}: {of} would be read from offset {starts[of]}, after its end at offset "
                f"{ends[of]} ({options.end.option})"
            )
    return [OffsetRange(of, starts[of], ends[of]) for of in partitions if starts[of] < ends[of]]


def checked_starts(cluster: KafkaCluster, options: SourceOptions, partitions: Sequence[TopicPartition]) -> Offsets:
    """Return the start of each partition. Offsets in the user's options are compared with those that exist.

    Raises BadOption, LostOffsets, TopicTrouble and BrokerUnreachable.
    """
    starts = offsets_at(cluster, options.start, partitions, committed=options.committed)
    named = [of for of, offset in options.start.of if offset >= 0]
    if not named:
        return starts
    first, last = (cluster.offsets(named, at, committed=False) for at in (EARLIEST, LATEST))
    beyond = [of for of in named if starts[of] > last[of]]
    report_losses(
        [
            f"{of}: {options.start.option} is offset {starts[of]}, but the log ends at offset {last[of]}"
            for of in beyond
        ],
        must_fail=options.fail_on_data_loss,
    )
    missing = [of for of in named if starts[of] < first[of]]
    report_losses(
        [
            f"{of}: {options.start.option} is offset {starts[of]}, but the log begins at offset {first[of]}: offsets "
            f"{starts[of]} to {first[of] - 1} are gone (retention or deleted records)"
            for of in missing
        ],
        must_fail=options.fail_on_data_loss,
    )
    return {**starts, **{of: last[of] for of in beyond}, **{of: first[of] for of in missing}}


def _checked_ends(cluster: KafkaCluster, options: SourceOptions, partitions: Sequence[TopicPartition]) -> Offsets:
    ends = offsets_at(cluster, options.end, partitions, committed=options.committed)
    named = [of for of, offset in options.end.of if offset >= 0]
    if not named:
        return ends
    first, last = (cluster.offsets(named, at, committed=options.committed) for at in (EARLIEST, LATEST))
    beyond = [of for of in named if ends[of] > last[of]]
    before = [of for of in named if ends[of] < first[of]]
    open_ones = " for readers of committed records" if options.committed else ""
    report_losses(
        [
            f"{of}: {options.end.option} is offset {ends[of]}, but the log ends at offset {last[of]}{open_ones}"
            for of in beyond
        ],
        must_fail=options.fail_on_data_loss,
    )
    report_losses(
        [
            f"{of}: {options.end.option} is offset {ends[of]}, but the log begins at offset {first[of]}: earlier "
            "records are gone (retention or deleted records)"
            for of in before
        ],
        must_fail=options.fail_on_data_loss,
    )
    return {**ends, **{of: last[of] for of in beyond}, **{of: first[of] for of in before}}
