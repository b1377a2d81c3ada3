"""Finds topics that contain dead letters, from the headers of each topic's newest records."""

from collections.abc import Iterator
from dataclasses import dataclass

from confluent_kafka import Consumer

from sluicegate.dead_letters.cluster import Cluster, Range, ranges_of
from sluicegate.dead_letters.groups import BoundedCounts
from sluicegate.dead_letters.letter import Letter, ReadLetter
from sluicegate.dead_letters.reading import read_records

_INTERNAL = "__"


@dataclass(frozen=True, slots=True)
class LetterTopic:
    """The dead letters among a topic's newest records.

    `records` is the difference between its first and last offsets. `sampled` is the number of records that were read,
    and `letters` is the number of dead letters among them. `oldest` and `newest` are the timestamps in the topic (ms)
    of the oldest stored record and the newest read record; without letters, `oldest` is that of the oldest read record.
    """

    name: str
    records: int
    sampled: int
    letters: tuple[Letter, ...]
    oldest: int
    newest: int

    @property
    def formats(self) -> list[str]:
        """Return the formats of the sampled letters."""
        return sorted({letter.format.value for letter in self.letters})

    @property
    def sources(self) -> list[tuple[str, int]]:
        """Return the original topics of the sampled letters, with their counts."""
        counts = BoundedCounts()
        for letter in self.letters:
            counts.add(letter.topic)
        return counts.ordered()


def survey_topic(
    consumer: Consumer, name: str, partitions: int, sample: int, read_letter: ReadLetter
) -> LetterTopic | None:
    """Read a topic's newest `sample` records, and return what they contain.

    Also reads the oldest record if there are dead letters, or no newest records. Return None if no record was read.
    Raises ClusterUnavailable.
    """
    ranges = [each for each in ranges_of(consumer, name, partitions) if each.start < each.end]
    if not ranges:
        return None
    of_each = max(1, sample // len(ranges))
    ends = [Range(each.partition, max(each.start, each.end - of_each), each.end) for each in ranges]
    records = list(read_records(consumer, name, ends))
    letters = tuple(letter for record in records if (letter := read_letter(record)) is not None)
    times = oldest = [record.timestamp for record in records]
    if letters or not times:
        firsts = [Range(each.partition, each.start, each.start + 1) for each in ranges]
        oldest = [record.timestamp for record in read_records(consumer, name, firsts)]
    newest = times or oldest
    if not newest:  # all offsets that were read are of markers or of aborted transactions
        return None
    count = sum(each.end - each.start for each in ranges)
    return LetterTopic(name, count, len(records), letters, min([*oldest, *times]), max(newest))


def topics_with_letters(
    cluster: Cluster, names: dict[str, int], sample: int, read_letter: ReadLetter
) -> Iterator[LetterTopic]:
    """Yield the topics in `names` that contain dead letters. `names` maps topics to their numbers of partitions.

    Reads the oldest record and the newest `sample` records of each topic. Raises ClusterUnavailable.
    """
    consumer = cluster.consumer()
    try:
        for name, partitions in names.items():
            if name.startswith(_INTERNAL):
                continue
            found = survey_topic(consumer, name, partitions, sample, read_letter)
            if found is not None and found.letters:
                yield found
    finally:
        consumer.close()
