"""Reads the dead letters to replay, in order, from dead-letter topics or other sources."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from sluicegate.pipeline.jobs.replay.dead_letter import DeadLetter, NoDeadLetter, dead_letter
from sluicegate.pipeline.jobs.replay.decisions import RemainingLetter, RemainingReason
from sluicegate.pipeline.jobs.replay.progress import DEAD_LETTER_GROUP
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.source.options import source_options
from sluicegate.pipeline.source.reading import read_rows

_COLUMNS = "key,value,offset,headers_binary"
_ROWS = 5_000
_NAMES = _COLUMNS.split(",")


@dataclass(frozen=True, slots=True)
class LetterBatch:
    """Consecutive records, each with its offset. `size` is the total number of bytes.

    For a record that is not a dead letter, the batch contains the reason why the record remains.
    """

    records: list[tuple[int, DeadLetter | RemainingLetter]]
    size: int


class LetterSource(Protocol):
    """A source of dead letters, which Spark sends to executors. `group` is the prefix of the progress groups."""

    @property
    def group(self) -> str: ...

    def within(self, wanted: OffsetRange) -> Iterator[LetterBatch]:
        """Yield a range's dead letters in order. Raises the errors of reading."""


@dataclass(frozen=True, slots=True)
class DeadLetterTopic:
    """All records in dead-letter topics. `options` are the options of the raw source."""

    options: Mapping[str, str]
    group: str = DEAD_LETTER_GROUP

    def within(self, wanted: OffsetRange) -> Iterator[LetterBatch]:
        """Yield a range's dead letters in order. Raises the errors of reading."""
        reading = source_options({**self.options, "subscribe": wanted.of.topic, "columns": _COLUMNS})
        for batch in read_rows(reading, wanted):
            for start in range(0, len(batch), _ROWS):
                rows = batch.slice(start, _ROWS)
                columns = [rows[name].to_pylist() for name in _NAMES]
                found: list[tuple[int, DeadLetter | RemainingLetter]] = []
                for key, value, offset, headers in zip(*columns, strict=True):
                    try:
                        found.append((offset, dead_letter(wanted.of, offset, key, value, headers)))
                    except NoDeadLetter as error:
                        found.append((offset, RemainingLetter(RemainingReason.NO_DEAD_LETTER, str(error))))
                yield LetterBatch(found, rows.nbytes)
