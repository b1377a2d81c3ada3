"""Batches that cannot be read: their offsets and the reason."""

from collections.abc import Iterable
from dataclasses import dataclass

from sluicegate.pipeline.kafka.fetching import StoredBatch
from sluicegate.pipeline.source.decoding import BrokenRecords

_MOST_NAMED = 1000
"""Limit for a chunk; further batches are counted with the last one."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """`batches` from `first_offset` to `last_offset` with a size of `stored_bytes`; `why`: the reason for the first.

    Offsets come from headers, as far as they agree with the next batch.
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
        """Return both as one."""
        batches, size = self.batches + other.batches, self.stored_bytes + other.stored_bytes
        return Unreadable(self.first_offset, other.last_offset, batches, size, self.why)


def unreadable(batch: StoredBatch, error: BrokenRecords) -> Unreadable:
    """Return the entry for a batch that could not be decoded."""
    return Unreadable(batch.first_offset, batch.last_offset, 1, batch.end - batch.start, str(error))


def in_stretches(found: Iterable[Unreadable]) -> tuple[Unreadable, ...]:
    """Join adjacent entries."""
    stretches = Stretches()
    for each in found:
        stretches.add(each)
    return tuple(stretches.found)


class Stretches:
    """Joins adjacent entries and limits their number, so that a fully damaged partition needs little memory."""

    def __init__(self) -> None:
        self.found: list[Unreadable] = []

    def add(self, each: Unreadable) -> None:
        """Add an entry, in the order of offsets."""
        found = self.found
        if found and (found[-1].last_offset + 1 >= each.first_offset or len(found) == _MOST_NAMED):
            found[-1] = found[-1].with_next(each)
        else:
            found.append(each)
