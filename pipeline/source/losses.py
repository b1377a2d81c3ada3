"""Finds records that a stream or a job has not read and that no longer exist.

The stored offsets are compared with the cluster's offsets. Offsets alone do not reveal that a topic was deleted and
created again with the same number of records, so a checkpoint also contains the ids of its topics. Brokers older than
Kafka 2.8 do not support ids.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sluicegate.pipeline.kafka.cluster import KafkaCluster, OffsetRange, TopicPartition, TopicUnknown
from sluicegate.pipeline.runs.errors import PipelineError
from sluicegate.pipeline.source.subscription import Subscription
from sluicegate.protocol.messages.fetch import EARLIEST, LATEST

_IDS = "topic ids"
"""Key of the ids in a checkpoint. No topic has this name, because topic names cannot contain a blank."""
_MOST_SHOWN = 5

StoredOffsets = dict[str, dict[str, Any]]
"""{topic: {partition: offset}, "topic ids": {topic: id}}. Checkpoints of Spark's own source lack the second part."""


class LostOffsets(PipelineError):
    """Raised if records that a query should read no longer exist. The message gives topic, partition and offsets."""


@dataclass(frozen=True, slots=True)
class Position:
    """The offsets that a stream has reached in all partitions, and the ids of their topics if they are known."""

    offsets: Mapping[TopicPartition, int]
    ids: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_stored(cls, stored: StoredOffsets) -> "Position":
        """Return the position in a checkpoint."""
        offsets = {
            TopicPartition(topic, int(partition)): offset
            for topic, its in stored.items()
            if topic != _IDS
            for partition, offset in its.items()
        }
        return cls(offsets, stored.get(_IDS, {}))

    def stored(self) -> StoredOffsets:
        """Return the position in the form that a checkpoint contains."""
        found: StoredOffsets = {}
        for of, offset in sorted(self.offsets.items()):
            found.setdefault(of.topic, {})[str(of.partition)] = offset
        ids = {name: its for name, its in sorted(self.ids.items()) if its and name in found}
        return found | ({_IDS: ids} if ids else {})


@dataclass(frozen=True, slots=True)
class LogStates:
    """The first offset and the end of each existing partition, and the topics' ids, which are "" if unknown.

    The end includes open transactions.
    """

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    ids: Mapping[str, str]


def existing_partitions(
    cluster: KafkaCluster, subscription: Subscription, *, must_exist: bool
) -> tuple[list[TopicPartition], dict[str, str]]:
    """Return the subscribed partitions and the ids of their topics.

    Raises BadOption, BrokerUnreachable and, with `must_exist`, TopicTrouble if a topic does not exist.
    """
    names = subscription.names(cluster)
    if must_exist:
        return subscription.partitions(cluster), cluster.topic_ids(names)
    if not names:
        return [], {}
    try:
        found = cluster.partitions(names)
        ids = cluster.topic_ids(names)
    except TopicUnknown:
        ids = cluster.topic_ids(names)
        found = cluster.partitions(ids) if ids else []
    return [of for of in found if subscription.covers(of)], ids


def log_states(cluster: KafkaCluster, subscription: Subscription, *, must_exist: bool) -> LogStates:
    """Return the states of the subscribed partitions. Raises the errors of `existing_partitions`."""
    partitions, ids = existing_partitions(cluster, subscription, must_exist=must_exist)
    starts, ends = (cluster.offsets(partitions, at, committed=False) for at in (EARLIEST, LATEST))
    return LogStates(starts, ends, ids)


def is_recreated(known: Mapping[str, str], now: Mapping[str, str], topic: str) -> bool:
    """Return whether the topic was created again since its id was stored in `known`."""
    return bool(known.get(topic) and now.get(topic) and known[topic] != now[topic])


def surviving_ranges(start: Position, end: Position, now: LogStates) -> tuple[list[OffsetRange], list[str]]:
    """Return the ranges between two positions that still exist, and a sentence for each partition that lost records."""
    ranges, lost = [], []
    for of in sorted({*start.offsets, *end.offsets}):
        found, sentence = _planned(of, start, end, now)
        if sentence is not None:
            lost.append(f"{of}: {sentence}")
        if found is not None and found.size > 0:
            ranges.append(found)
    return ranges, lost


def _planned(
    of: TopicPartition, start: Position, end: Position, now: LogStates
) -> tuple[OffsetRange | None, str | None]:
    begun, until = start.offsets.get(of), end.offsets.get(of)
    if of not in now.ends or until is None or is_recreated(end.ids, now.ids, of.topic):
        return None, _no_longer(of, begun, until, now)
    first, last = now.starts[of], now.ends[of]
    sentence = None
    if begun is None:
        begun = first
        if first > 0:
            sentence = f"the partition is new and begins at offset {first}, not 0: earlier records were deleted unread"
    elif is_recreated(start.ids, now.ids, of.topic):
        sentence = (
            f"was read up to offset {begun}, and the topic has since been recreated (its id changed) and has offsets "
            f"{first} to {last - 1}: records of the deleted topic from offset {begun} on are gone"
        )
        begun = first
    elif begun > last:
        sentence = (
            f"was read up to offset {begun}, but ends at offset {last}: its broker lost records, or the topic was "
            f"recreated"
        )
        begun = until = last
    elif begun < first:
        sentence = (
            f"was read up to offset {begun}, and begins at offset {first}: offsets {begun} to {first - 1} are gone "
            "(retention or deleted records)"
        )
        begun = first
    if until > last and sentence is None:
        sentence = f"the batch ends at offset {until}, and the log at {last}: offsets {last} to {until - 1} are gone"
    return OffsetRange(of, begun, max(begun, min(until, last))), sentence


def _no_longer(of: TopicPartition, begun: int | None, until: int | None, now: LogStates) -> str | None:
    """Return the reason why a partition can no longer be read; None if the query would not have read it."""
    if begun is None and until is None:
        return None
    if of.topic not in now.ids:
        why = "the topic no longer exists, or is no longer subscribed"
    elif of not in now.ends:
        why = "the partition no longer exists, or is no longer subscribed: was the topic recreated with fewer?"
    elif until is None:
        why = "the partition is no longer part of the batch"
    else:
        why = f"the topic has since been recreated (its id changed) and ends at offset {now.ends[of]}"
    if until is None or until == begun:
        return f"was read up to offset {begun}, and {why}: records from offset {begun} on are gone"
    if begun is None:
        return f"was to be read up to offset {until}, and {why}: records up to offset {until - 1} are gone"
    return f"was read up to offset {begun}, and {why}: offsets {begun} to {until - 1} are gone"


def report_losses(lost: Sequence[str], *, must_fail: bool) -> None:
    """Warn about each sentence. Raise LostOffsets if losses end the query."""
    if not lost:
        return
    if must_fail:
        more = f"; and {len(lost) - _MOST_SHOWN:,} more partitions" if len(lost) > _MOST_SHOWN else ""
        raise LostOffsets(
            f"{'; '.join(lost[:_MOST_SHOWN])}{more}. With failOnDataLoss=false, the query reports this and continues "
            f"with the records that exist"
        )
    for sentence in lost:
        warnings.warn(f"{sentence}; continuing with what exists, because failOnDataLoss is false", stacklevel=2)
