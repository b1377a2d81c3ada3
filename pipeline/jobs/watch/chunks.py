"""What a batch of a watch reads: a range of each partition, and between which moments it was appended.

A watch has looked at a partition before. So what it finds behind the end of then was appended since: where a profile
has to estimate, a watch that has caught up knows. Its clock is the profile's, held between these moments.
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

_LOOKS = 3


class TopicChanged(PipelineError):
    """A topic ends before what was read of it; the text says which, and what to do."""


@dataclass(frozen=True, slots=True)
class Place:
    """What lies from `offset` on was appended after the moment `after_ms`; 0: nobody looked."""

    offset: int
    after_ms: int


@dataclass(frozen=True, slots=True)
class Piece:
    """What one task reads, appended between two moments (ms)."""

    wanted: OffsetRange
    after_ms: int
    until_ms: int

    def clock(self, told: Clock | None) -> Clock:
        """`told`: the clock that its records tell, which may be wrong as a whole."""
        clock = told if told is not None else Clock.standing_at(self.until_ms)
        return Clock(clock.offsets, np.clip(clock.times, self.after_ms, self.until_ms))


@dataclass(frozen=True, slots=True)
class Look:
    """At all partitions: where each begins and ends for readers, and in which nothing lies behind an open transaction,
    which would be older than it looks. It began at `begun_ms` and was over at `ended_ms`. `ids`: of the topics that
    exist, by name, "" where a broker has none.
    """

    begun_ms: int
    ended_ms: int
    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    settled: frozenset[TopicPartition]
    ids: Mapping[str, str]

    def pieces(self, places: Mapping[TopicPartition, Place], at_most: int) -> list[Piece]:
        """What is new, dealt out by what each partition has left where there is more. Raises TopicChanged."""
        left: list[tuple[OffsetRange, int]] = []
        for of, end in sorted(self.ends.items()):
            place = places.get(of, Place(self.starts[of], 0))
            if end < place.offset and self.starts[of] < place.offset:
                raise TopicChanged(
                    f"{of} ends at offset {end}, and was read up to {place.offset}: its broker has lost records, or "
                    "the topic was created again. Watch it with another --out"
                )
            if end > place.offset:
                left.append((OffsetRange(of, place.offset, end), place.after_ms))
        total = sum(wanted.size for wanted, _ in left)
        if total > at_most:
            left = [(_cut(wanted, -(-wanted.size * at_most // total)), after) for wanted, after in left]
        return [Piece(wanted, after, self.ended_ms) for wanted, after in left]

    def place_behind(self, piece: Piece) -> Place:
        """Where the next piece begins."""
        of, end = piece.wanted.of, piece.wanted.end
        knows = end == self.ends[of] and of in self.settled
        return Place(end, self.begun_ms if knows else piece.after_ms)


def look_at(topics: Topics) -> Look:
    """At the topics that exist. Raises TopicTrouble, BrokerUnreachable and LoginRejected."""
    with topics.cluster() as cluster:
        for _ in range(_LOOKS - 1):
            with suppress(TopicUnknown):  # deleted between two of the questions
                return _look(cluster, topics.names)
        return _look(cluster, topics.names)


def _look(cluster: Cluster, names: Iterable[str]) -> Look:
    begun_ms = time.time_ns() // 1_000_000
    ids = cluster.topic_ids(names)
    partitions = cluster.partitions(ids)
    starts = cluster.offsets(partitions, EARLIEST, committed=True)
    ends, written = (cluster.offsets(partitions, LATEST, committed) for committed in (True, False))
    settled = frozenset(of for of in partitions if ends[of] >= written[of])
    return Look(begun_ms, time.time_ns() // 1_000_000, starts, ends, settled, ids)


def ids_of(topics: Topics) -> dict[str, str]:
    """What `Look.ids` would be now."""
    with topics.cluster() as cluster:
        return cluster.topic_ids(topics.names)


def _cut(wanted: OffsetRange, size: int) -> OffsetRange:
    return OffsetRange(wanted.of, wanted.start, min(wanted.end, wanted.start + size))
