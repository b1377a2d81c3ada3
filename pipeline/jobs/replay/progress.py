"""Stores the progress of a replay as a group's offsets, and as notes in the folder for results.

The offsets are committed together with the written records, as in a repair. Each run lists the records that it leaves
in `runs/N`. There it also notes where it begins, just before it writes, and where it ended. The run has handled
everything before the start of the next run, so the next run lists later entries again. A broker deletes a group's
offsets after a while (`offsets.retention.minutes`); then the notes show which ranges have ended.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame

from sluicegate.pipeline.jobs.repair.settings import topic_id_of
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.runs.errors import EarlierBuild
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics
from sluicegate.pipeline.writing.progress import WriteProgress, progress_group, progress_in
from sluicegate.pipeline.writing.record_writer import CannotWriteTopic, Writing
from sluicegate.pipeline.writing.transactions import transactions

DEAD_LETTER_GROUP, LISTED_GROUP = "sluicegate-replay", "sluicegate-replay-found"
"""Prefixes of groups: for dead letters, and for records that an audit listed."""


def groups_of(topics: Topics, begins: str = DEAD_LETTER_GROUP) -> dict[str, str]:
    """Return the group of each source topic. Raises CannotWriteTopic.

    A topic that is created again gets a different group.
    """
    admin = AdminClient(topics.for_librdkafka)
    try:
        return {name: f"{begins}.{name}.{topic_id_of(admin, name)}" for name in topics.names}
    except KafkaException as error:
        raise CannotWriteTopic(f"{', '.join(topics.names)}: {error.args[0].str()}") from error


@dataclass(frozen=True, slots=True)
class RemainingRanges:
    """The rest of the ranges, and a sentence for each partition that lost records before a replay read them."""

    ranges: list[OffsetRange]
    missing: tuple[str, ...] = ()


def committed_remainder(topics: Topics, groups: Mapping[str, str], ranges: Sequence[OffsetRange]) -> RemainingRanges:
    """Return the rest of the ranges, without disturbing a running replay. Raises CannotWriteTopic."""
    client = {**topics.for_librdkafka, "isolation.level": "read_uncommitted"}  # do not wait for open transactions
    found: dict[TopicPartition, WriteProgress] = {}
    try:
        for name, group_id in groups.items():
            with progress_group(group_id, client) as consumer:
                found |= progress_in(consumer, [each.of for each in ranges if each.of.topic == name])
    except KafkaException as error:
        raise CannotWriteTopic(f"{', '.join(groups)}: {error.args[0].str()}") from error
    return _remaining_of(ranges, {of: its.reached for of, its in found.items()}, is_whole=_is_whole(groups))


def settled_remainder(topics: Topics, groups: Mapping[str, str], ranges: Sequence[OffsetRange]) -> RemainingRanges:
    """Return the rest of the ranges after a killed run's transaction was committed or aborted.

    Fences a running replay, which then ends. Raises CannotWriteTopic.
    """
    reached: dict[TopicPartition, int] = {}
    for each in ranges:
        with transactions(each.of, writing_of(topics, groups, each.of)) as target:
            before = target.before()
            if before is not None:
                reached[each.of] = before.reached
    return _remaining_of(ranges, reached, is_whole=_is_whole(groups))


def writing_of(topics: Topics, groups: Mapping[str, str], of: TopicPartition, largest_batch: int = 1 << 20) -> Writing:
    """Return the settings for writing a partition's records.

    `largest_batch` is the maximum batch size (bytes) of all destination topics.
    """
    return Writing(groups[of.topic], largest_batch, "lz4", topics, "their topics")


def _is_whole(groups: Mapping[str, str]) -> bool:
    """Return whether the ranges are whole partitions. The ranges of an audit begin and end at listed records."""
    return not any(group_id.startswith(f"{LISTED_GROUP}.") for group_id in groups.values())


def _remaining_of(
    ranges: Sequence[OffsetRange], reached: Mapping[TopicPartition, int], *, is_whole: bool
) -> RemainingRanges:
    """Return the rest of each range, even if it is empty. Raises CannotWriteTopic if a log ends before its progress."""
    for each in ranges:
        if reached.get(each.of, 0) > each.end and is_whole:
            raise CannotWriteTopic(
                f"{each.of} was replayed up to offset {reached[each.of]}, but ends at offset {each.end}: its broker "
                f"lost records. Replay the rest from another topic, or delete the consumer group that stores its "
                f"progress"
            )
    missing = tuple(
        f"{each.of} was replayed up to offset {reached[each.of]}, and begins at offset {each.start}: dead letters at "
        f"offsets {reached[each.of]} to {each.start - 1} are gone (retention or deleted records)"
        for each in ranges
        if is_whole and 0 < reached.get(each.of, 0) < each.start
    )
    remaining = [replace(each, start=min(each.end, max(each.start, reached.get(each.of, 0)))) for each in ranges]
    return RemainingRanges(remaining, missing)


_FOLDER = "runs"
_BEGUN = "begun.json"
_ENDED = "ended.json"
_REMAINING = "remaining"


@dataclass(frozen=True, slots=True)
class Run:
    """The run with this `number` in a folder. A run counts once it has begun to write."""

    results: Results
    number: int

    @property
    def _path(self) -> str:
        return f"{_FOLDER}/{self.number}"

    def list_remaining(self, rows: DataFrame) -> DataFrame:
        """Write the list of the records that this run leaves."""
        return self.results.write_table(f"{self._path}/{_REMAINING}", rows)

    def begin(self, ranges: Sequence[OffsetRange], groups: dict[str, str]) -> None:
        """Note that writing begins. `groups` distinguish topics with the same name."""
        places = [[groups[r.of.topic], r.of.topic, r.of.partition, r.start] for r in ranges]
        self.results.write_text(f"{self._path}/{_BEGUN}", json.dumps(places) + "\n")

    def end(self, ranges: Sequence[OffsetRange], groups: dict[str, str]) -> None:
        """Note that all ranges have been processed."""
        places = [[groups[r.of.topic], r.of.partition, r.end] for r in ranges]
        self.results.write_text(f"{self._path}/{_ENDED}", json.dumps(places) + "\n")

    def unfinished_ranges(self, ranges: Sequence[OffsetRange], groups: dict[str, str]) -> list[OffsetRange]:
        """Return the ranges that earlier runs in this folder have not completed.

        This works even if a broker has deleted the offsets.
        """
        ends: dict[tuple[str, int], int] = {}
        for number in range(self.number):
            note = f"{_FOLDER}/{number}/{_ENDED}"
            for group_id, partition, end in json.loads(self.results.read_text(note)) if self.results.has(note) else ():
                ends[group_id, partition] = max(end, ends.get((group_id, partition), 0))
        reached = [ends.get((groups[r.of.topic], r.of.partition), 0) for r in ranges]
        return [replace(r, start=max(r.start, min(r.end, end))) for r, end in zip(ranges, reached, strict=True)]

    def remaining_before(self, ranges: Sequence[OffsetRange], groups: dict[str, str]) -> DataFrame | None:
        """Return the records before these ranges that earlier runs on the same topics left; None if there are none.

        Raises EarlierBuild.
        """
        parts = []
        ends = {(groups[r.of.topic], r.of.partition): r.start for r in ranges}
        for number in reversed(range(self.number)):
            begun = json.loads(self.results.read_text(f"{_FOLDER}/{number}/{_BEGUN}"))
            its = {(group_id, partition): (topic, start) for group_id, topic, partition, start in begun}
            bounds = [(its[key][0], key[1], end) for key, end in ends.items() if key in its]
            if bounds:
                name = f"{_FOLDER}/{number}/{_REMAINING}"
                if not self.results.has(name):
                    raise EarlierBuild(self.results.path(f"{_FOLDER}/{number}"))
                rows = self.results.read_table(name)
                known = rows.sparkSession.createDataFrame(bounds, "topic string, partition int, end bigint")
                parts.append(rows.join(known, ["topic", "partition"]).where("offset < end").drop("end"))
            ends |= {key: start for key, (_, start) in its.items() if key in ends}
        return reduce(DataFrame.unionByName, parts) if parts else None


def next_run(results: Results) -> Run:
    """Return a run with the lowest number with which no earlier run has begun."""
    number = 0
    while results.has(f"{_FOLDER}/{number}/{_BEGUN}"):
        number += 1
    return Run(results, number)
