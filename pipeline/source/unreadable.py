"""Batches that cannot be read: which offsets they hold, and why not."""

from collections.abc import Iterable
from dataclasses import dataclass

from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.pipeline.source.decoding import BrokenRecords

_MOST_NAMED = 1000
"""Of a piece of a partition: what is beyond is counted with the last."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """`batches` from `first_offset` to `last_offset`, which take `stored_bytes`; `why` the first cannot be read.

    Offsets are what headers say, as far as they agree with the next batch.
    """

    first_offset: int
    last_offset: int
    batches: int
    stored_bytes: int
    why: str

    def __str__(self) -> str:
        count = "1 batch" if self.batches == 1 else f"{self.batches:,} batches"
        return f"offsets {self.first_offset} to {self.last_offset} ({count}) cannot be read: {self.why}"

    def with_next(self, other: "Unreadable") -> "Unreadable":
        """Both as one."""
        batches, size = self.batches + other.batches, self.stored_bytes + other.stored_bytes
        return Unreadable(self.first_offset, other.last_offset, batches, size, self.why)


def unreadable(batch: StoredBatch, error: BrokenRecords) -> Unreadable:
    """One that could not be decoded."""
    return Unreadable(batch.first_offset, batch.last_offset, 1, batch.end - batch.start, str(error))


def in_stretches(found: Iterable[Unreadable]) -> tuple[Unreadable, ...]:
    """Those that lie behind each other as one."""
    stretches = Stretches()
    for each in found:
        stretches.add(each)
    return tuple(stretches.found)


class Stretches:
    """Those that lie behind each other as one, and so many at most that a partition that is nothing but damaged takes
    little memory.
    """

    def __init__(self) -> None:
        self.found: list[Unreadable] = []

    def add(self, each: Unreadable) -> None:
        """In the order of offsets."""
        found = self.found
        if found and (found[-1].last_offset + 1 >= each.first_offset or len(found) == _MOST_NAMED):
            found[-1] = found[-1].with_next(each)
        else:
            found.append(each)
