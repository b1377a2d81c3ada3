"""Divides offset ranges into tasks.

A task costs Spark and its Python worker as much as reading about ten thousand records, so many small partitions share
tasks. A partition's records stay in order, because a task reads whole ranges one after another.
"""

from collections.abc import Iterable
from itertools import pairwise

from sluicegate.pipeline.kafka.cluster import OffsetRange

_TASKS_AT_LEAST = 32
"""Partitions share tasks only if there are more partitions than this, so that all cores of a cluster have work."""
_SHARED_OFFSETS = 65_536

Ranges = tuple[OffsetRange, ...]


def ranges_of_tasks(
    ranges: Iterable[OffsetRange], at_least: int | None, most_records: int | None = None
) -> list[Ranges]:
    """Return the ranges of each task, in order.

    `at_least` is the option minPartitions; `most_records` is the option maxRecordsPerPartition. Neighbours share a task
    if there are more ranges than `at_least` and `_TASKS_AT_LEAST`; the ranges in a shared task have at most
    `_SHARED_OFFSETS` offsets in total.
    """
    pieces = split_ranges(ranges, at_least, most_records)
    most_ranges = max(1, len(pieces) // max(at_least or 0, _TASKS_AT_LEAST))
    tasks: list[list[OffsetRange]] = []
    offsets = 0
    for piece in pieces:
        if tasks and len(tasks[-1]) < most_ranges and offsets + piece.size <= _SHARED_OFFSETS:
            tasks[-1].append(piece)
            offsets += piece.size
        else:
            tasks.append([piece])
            offsets = piece.size
    return [tuple(its) for its in tasks]


def split_ranges(
    ranges: Iterable[OffsetRange], at_least: int | None, most_records: int | None = None
) -> list[OffsetRange]:
    """Split the larger ranges into pieces of similar size.

    There are at least `at_least` pieces, and no piece has more than `most_records` offsets. None means no limit.
    """
    whole = list(ranges)
    total = sum(each.size for each in whole)
    share = total if at_least is None or len(whole) >= at_least else total / at_least
    found: list[OffsetRange] = []
    for each in whole:
        count = max(1, round(each.size / share) if share else 1, -(-each.size // most_records) if most_records else 1)
        cuts = [each.start + each.size * i // count for i in range(count + 1)]
        found += [OffsetRange(each.of, start, end) for start, end in pairwise(cuts) if start < end]
    return found
