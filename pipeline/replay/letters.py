"""The dead letters of a range of offsets, in their order."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.replay.dead_letter import DeadLetter, NoDeadLetter, dead_letter
from sluicegate.pipeline.source.options import source_options
from sluicegate.pipeline.source.reading import read_rows

_COLUMNS = "key,value,offset,headers_binary"
_ROWS = 5_000
_NAMES = _COLUMNS.split(",")


@dataclass(frozen=True, slots=True)
class Some:
    """Records that lie one behind the other: each with its offset, and a sentence where it is no dead letter; `size`:
    bytes of all.
    """

    records: list[tuple[int, DeadLetter | str]]
    size: int


def letters_in(options: Mapping[str, str], wanted: OffsetRange) -> Iterator[Some]:
    """`options` are the raw source's. Raises what reading raises."""
    reading = source_options({**options, "subscribe": wanted.of.topic, "columns": _COLUMNS})
    for batch in read_rows(reading, wanted):
        for start in range(0, len(batch), _ROWS):
            rows = batch.slice(start, _ROWS)
            columns = [rows[name].to_pylist() for name in _NAMES]
            found: list[tuple[int, DeadLetter | str]] = []
            for key, value, offset, headers in zip(*columns, strict=True):
                try:
                    found.append((offset, dead_letter(wanted.of, offset, key, value, headers)))
                except NoDeadLetter as error:
                    found.append((offset, str(error)))
            yield Some(found, rows.nbytes)
