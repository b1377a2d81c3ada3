"""Iterates over a topic's dead letters, and groups them."""

from collections.abc import Iterable, Iterator

from sluicegate.dead_letters.cluster import Cluster, present_ranges
from sluicegate.dead_letters.formats import read_letter
from sluicegate.dead_letters.groups import Group, LetterGroups
from sluicegate.dead_letters.letter import Letter
from sluicegate.dead_letters.reading import read_records


def letters_of(cluster: Cluster, topic: str) -> Iterator[Letter]:
    """Yield the dead letters that a topic contains now, in offset order per partition. Skips other records.

    Uses constant memory. Raises ClusterUnavailable.
    """
    ranges = present_ranges(cluster, topic)
    consumer = cluster.consumer()
    try:
        for record in read_records(consumer, topic, ranges):
            letter = read_letter(record)
            if letter is not None:
                yield letter
    finally:
        consumer.close()


def group_letters(letters: Iterable[Letter]) -> list[Group]:
    """Group letters by cause and return the groups, largest first. Memory is bounded."""
    groups = LetterGroups()
    for letter in letters:
        groups.add(letter)
    return groups.ordered()
