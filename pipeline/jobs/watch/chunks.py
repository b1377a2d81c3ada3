"""The chunks that a batch of a watch reads: a range of each partition, and the moments between which it was appended.

Records after the end that the watch saw last were appended since. So a watch that has caught up knows what a profile
has to estimate. Its clock is the profile's, limited to these moments.
"""

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from sluicegate.pipeline.errors import PipelineError
from sluicegate.pipeline.jobs.profile.clock import Clock
from sluicegate.pipeline.kafka.cluster import Cluster, OffsetRange, TopicPartition, TopicUnknown
from sluicegate.pipeline.topics import Topics
from sluicegate.protocol.messages.fetch import EARLIEST, LATEST

_ATTEMPTS = 3


class TopicChanged(PipelineError):
    """A topic ends before the offset that was read; the text names it and a fix."""


@dataclass(frozen=True, slots=True)
class Place:
    """Records from `offset` on were appended after `after_ms`; 0: unknown."""

    offset: int
    after_ms: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """The range that one task reads, appended between two moments (ms)."""

    wanted: OffsetRange
    after_ms: int
    until_ms: int

    def clock(self, estimated: Clock | None) -> Clock:
        """Return the clock, limited to the chunk's moments. `estimated`: the clock from its records, which may be wrong
        as a whole.
        """
        clock = estimated if estimated is not None else Clock.fixed_at(self.until_ms)
        return Clock(clock.offsets, np.clip(clock.times, self.after_ms, self.until_ms))


@dataclass(frozen=True, slots=True)
class PartitionStates:
    """The state of all partitions: start and end for readers, and which have no open transaction, whose records would
    be older than they look. Taken between `begun_ms` and `ended_ms`. `ids`: of existing topics by name, "" if a broker
    has none.
    """

    begun_ms: int
    ended_ms: int
    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    settled: frozenset[TopicPartition]
    ids: Mapping[str, str]

    def chunks(self, places: Mapping[TopicPartition, Place], at_most: int) -> list[Chunk]:
        """Return the new ranges, shared by what each partition has left if there are more than `at_most` offsets.
        Raises TopicChanged.
        """
        left: list[tuple[OffsetRange, int]] = []
        for of, end in sorted(self.ends.items()):
            place = places.get(of, Place(self.starts[of], 0))
            if end < place.offset and self.starts[of] < place.offset:
                raise TopicChanged(
                    f"{of} ends at offset {end}, and was read up to {place.offset}: its broker has lost records, or "
                    "the topic was recreated. Watch it with another --out"
                )
            if end > place.offset:
                left.append((OffsetRange(of, place.offset, end), place.after_ms))
        total = sum(wanted.size for wanted, _ in left)
        if total > at_most:
            left = [(_cut(wanted, -(-wanted.size * at_most // total)), after) for wanted, after in left]
        return [Chunk(wanted, after, self.ended_ms) for wanted, after in left]

    def place_after(self, chunk: Chunk) -> Place:
        """Return where the next chunk begins."""
        of, end = chunk.wanted.of, chunk.wanted.end
        knows = end == self.ends[of] and of in self.settled
        return Place(end, self.begun_ms if knows else chunk.after_ms)


def read_states(topics: Topics) -> PartitionStates:
    """Return the state of existing topics. Raises TopicTrouble, BrokerUnreachable and LoginRejected."""
    with topics.cluster() as cluster:
        for _ in range(_ATTEMPTS - 1):
            with suppress(TopicUnknown):  # a topic was deleted between two requests
                return _read_states(cluster, topics.names)
        return _read_states(cluster, topics.names)


def _read_states(cluster: Cluster, names: Iterable[str]) -> PartitionStates:
    begun_ms = time.time_ns() // 1_000_000
    ids = cluster.topic_ids(names)
    partitions = cluster.partitions(ids)
    starts = cluster.offsets(partitions, EARLIEST, committed=True)
    ends, written = (cluster.offsets(partitions, LATEST, committed) for committed in (True, False))
    settled = frozenset(of for of in partitions if ends[of] >= written[of])
    return PartitionStates(begun_ms, time.time_ns() // 1_000_000, starts, ends, settled, ids)


def ids_of(topics: Topics) -> dict[str, str]:
    """Return the current `PartitionStates.ids`."""
    with topics.cluster() as cluster:
        return cluster.topic_ids(topics.names)


def _cut(wanted: OffsetRange, size: int) -> OffsetRange:
    return OffsetRange(wanted.of, wanted.start, min(wanted.end, wanted.start + size))
