"""What a replay takes back: records in their order, from wherever they lie."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from sluicegate.pipeline.jobs.replay.dead_letter import DeadLetter, NoDeadLetter, dead_letter
from sluicegate.pipeline.jobs.replay.decisions import Left, Why
from sluicegate.pipeline.jobs.replay.progress import KEPT
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.source.options import source_options
from sluicegate.pipeline.source.reading import read_rows

_COLUMNS = "key,value,offset,headers_binary"
_ROWS = 5_000
_NAMES = _COLUMNS.split(",")


@dataclass(frozen=True, slots=True)
class Some:
    """Records that lie one behind the other: each with its offset, and why it is left where it is no dead letter;
    `size`: bytes of all.
    """

    records: list[tuple[int, DeadLetter | Left]]
    size: int


class Letters(Protocol):
    """It goes to executors. `group`: how the names of groups begin that keep how far they have been replayed."""

    @property
    def group(self) -> str: ...

    def within(self, wanted: OffsetRange) -> Iterator[Some]:
        """Those of a range, in their order. Raises what reading raises."""


@dataclass(frozen=True, slots=True)
class KeptLetters:
    """All records of dead-letter topics. `options` are the raw source's."""

    options: Mapping[str, str]
    group: str = KEPT

    def within(self, wanted: OffsetRange) -> Iterator[Some]:
        """Those of a range, in their order. Raises what reading raises."""
        reading = source_options({**self.options, "subscribe": wanted.of.topic, "columns": _COLUMNS})
        for batch in read_rows(reading, wanted):
            for start in range(0, len(batch), _ROWS):
                rows = batch.slice(start, _ROWS)
                columns = [rows[name].to_pylist() for name in _NAMES]
                found: list[tuple[int, DeadLetter | Left]] = []
                for key, value, offset, headers in zip(*columns, strict=True):
                    try:
                        found.append((offset, dead_letter(wanted.of, offset, key, value, headers)))
                    except NoDeadLetter as error:
                        found.append((offset, Left(Why.NO_DEAD_LETTER, str(error))))
                yield Some(found, rows.nbytes)
