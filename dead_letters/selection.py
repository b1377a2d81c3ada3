"""Selects the letters to redrive."""

import json
from dataclasses import dataclass

from sluicegate.dead_letters.cluster import Range
from sluicegate.dead_letters.groups import ids_of
from sluicegate.dead_letters.letter import Letter


@dataclass(frozen=True, slots=True)
class LetterSelection:
    """A selection of the letters that meet all given conditions.

    - `ranges`: offsets by partition.
    - `group`: the id of a group, as the command `show` prints it.
    - `since_ms` (inclusive), `until_ms` (exclusive): timestamps in the dead-letter topic (Unix time, ms).
    - `key`: the record key. `header`: the name and value of one of the record's own headers.
    """

    ranges: tuple[Range, ...]
    group: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    key: bytes | None = None
    header: tuple[bytes, bytes] | None = None

    def takes(self, letter: Letter) -> bool:
        """Return whether a letter in the ranges is selected."""
        time = letter.record.timestamp
        return (
            (self.since_ms is None or time >= self.since_ms)
            and (self.until_ms is None or time < self.until_ms)
            and (self.key is None or letter.record.key == self.key)
            and (self.header is None or self.header in letter.headers)
            and (self.group is None or self.group in ids_of(letter))
        )

    def text(self) -> str:
        """Return a string that is the same for equal selections."""
        ranges = sorted((each.partition, each.start, each.end) for each in self.ranges)
        header = None if self.header is None else [each.hex() for each in self.header]
        key = None if self.key is None else self.key.hex()
        return json.dumps([ranges, self.group, self.since_ms, self.until_ms, key, header])
