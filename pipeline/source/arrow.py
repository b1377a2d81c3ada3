"""Converts decoded batches to Arrow record batches with the requested columns.

The columns are those of Spark's own Kafka source in its order, followed by those of the raw source.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.pipeline.source.decoding import BatchFacts, BrokenRecords, DecodedBatch
from sluicegate.protocol.records.columns import gather, read_headers

_HEADERS_DDL = "array<struct<key: string, value: binary>>"


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `type` is its type in Spark DDL."""

    name: str
    type: str


ALL = (
    Column("key", "binary"),
    Column("value", "binary"),
    Column("topic", "string"),
    Column("partition", "int"),
    Column("offset", "bigint"),
    Column("timestamp", "bigint"),
    Column("timestamp_type", "int"),
    Column("headers", _HEADERS_DDL),
    Column("key_size", "int"),
    Column("value_size", "int"),
    Column("magic", "int"),
    Column("codec", "string"),
    Column("producer_id", "bigint"),
    Column("producer_epoch", "int"),
    Column("base_sequence", "int"),
    Column("batch_base_offset", "bigint"),
    Column("batch_position", "int"),
    Column("batch_size", "int"),
    Column("batch_records", "int"),
)
BY_NAME_ONLY = (Column("headers_binary", "array<struct<key: binary, value: binary>>"),)
"""Headers with names as bytes, because some are not UTF-8. Only included on request."""
_BY_NAME = {column.name: column for column in (*ALL, *BY_NAME_ONLY)}


class UnknownColumn(ValueError):
    """Raised for an unknown column. The message lists the valid columns."""


def columns_named(text: str | None) -> tuple[Column, ...]:
    """Parse a comma-separated list of columns. Raises UnknownColumn.

    None selects all columns except those in `BY_NAME_ONLY`.
    """
    if text is None:
        return ALL
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in _BY_NAME:
            near = get_close_matches(name, _BY_NAME, 1)
            advice = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(_BY_NAME)}"
            raise UnknownColumn(f"unknown column {name!r}; {advice}")
    if not names:
        raise UnknownColumn(f"the option columns is empty; expected some of {', '.join(_BY_NAME)}")
    return tuple(_BY_NAME[name] for name in dict.fromkeys(names))


def ddl_of(columns: tuple[Column, ...]) -> str:
    """Return the schema as Spark DDL."""
    return ", ".join(f"{column.name} {column.type}" for column in columns)


_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()
_KEY, _VALUE, _HEADERS = 2, 4, 6
_NO_HEADERS_BYTES = 1
_HEADERS_TYPES = {
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    "headers_binary": pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())])),
}
_BYTES = {"key": _KEY, "value": _VALUE}
_NUMBERS = {  # the row in `DecodedBatch.columns`, and the width of its values
    "offset": (0, np.int64),
    "timestamp": (1, np.int64),
    "key_size": (_KEY + 1, np.int32),
    "value_size": (_VALUE + 1, np.int32),
}
_OF_BATCH: dict[str, tuple[Callable[[BatchFacts], Any], pa.DataType]] = {
    "timestamp_type": (lambda f: f.timestamp_type, pa.int32()),
    "magic": (lambda f: f.magic, pa.int32()),
    "codec": (lambda f: f.codec, pa.string()),
    "producer_id": (lambda f: f.producer_id, pa.int64()),
    "producer_epoch": (lambda f: f.producer_epoch, pa.int32()),
    "base_sequence": (lambda f: f.base_sequence, pa.int32()),
    "batch_base_offset": (lambda f: f.base_offset, pa.int64()),
    "batch_size": (lambda f: f.size, pa.int32()),
    "batch_records": (lambda f: f.records, pa.int32()),
}


@dataclass(slots=True)
class _Bytes:
    """The bytes of one column in all batches so far."""

    values: NDArray[np.uint8]
    filled: int
    sizes: list[NDArray[np.int64]]

    def add(self, batch: DecodedBatch, rows: slice, at: int) -> None:
        places = np.ascontiguousarray(batch.columns[at, rows])
        sizes = np.ascontiguousarray(batch.columns[at + 1, rows])
        needed = self.filled + int(np.maximum(sizes, 0).sum())
        if needed > len(self.values):
            grown = np.empty(max(needed, 2 * len(self.values)), np.uint8)
            grown[: self.filled] = self.values[: self.filled]
            self.values = grown
        ends = np.empty(len(sizes) + 1, np.int32)
        self.filled = gather(batch.payload, places, sizes, 0, len(sizes), ends, self.values, self.filled)
        self.sizes.append(sizes)

    def take(self) -> pa.Array:
        """Return all bytes as one array, and start again."""
        sizes = np.concatenate(self.sizes)
        ends = np.zeros(len(sizes) + 1, np.int32)
        np.cumsum(np.maximum(sizes, 0), out=ends[1:])
        nulls = int((sizes < 0).sum())
        validity = pa.py_buffer(np.packbits(sizes >= 0, bitorder="little")) if nulls else None
        values = pa.py_buffer(self.values[: self.filled].tobytes())
        self.filled, self.sizes = 0, []
        return pa.Array.from_buffers(pa.binary(), len(sizes), [validity, pa.py_buffer(ends), values], nulls)


class ArrowRows:
    """Collects the rows of one partition until `take` is called."""

    def __init__(self, of: TopicPartition, columns: Sequence[Column]) -> None:
        self._of = of
        self._names = [column.name for column in columns]
        self._counts: list[int] = []
        self._facts: list[BatchFacts] = []
        self._numbers: list[NDArray[np.int64]] = []
        self._positions: list[NDArray[np.int32]] = []
        self._headers: dict[str, list[pa.Array]] = {name: [] for name in _HEADERS_TYPES if name in self._names}
        self._bytes = {
            at: _Bytes(np.empty(1 << 20, np.uint8), 0, []) for name, at in _BYTES.items() if name in self._names
        }
        self.rows = 0

    @property
    def bytes(self) -> int:
        """Return the size of the collected keys and values."""
        return sum(column.filled for column in self._bytes.values())

    def add(self, batch: DecodedBatch, start: int, end: int) -> None:
        """Add the records with offsets in [start, end). If it raises BrokenRecords, it adds no records."""
        offsets = batch.offset
        first, last = 0, len(offsets)
        if last == 0 or offsets[0] < start or offsets[-1] >= end:
            first, last = (int(place) for place in np.searchsorted(offsets, (start, end)))
        if first == last:
            return
        rows = slice(first, last)
        headers = {name: self._headers_of(batch, rows, name) for name in self._headers}
        self._counts.append(last - first)
        self._facts.append(batch.facts)
        self._numbers.append(batch.columns[:, rows])
        if "batch_position" in self._names:
            self._positions.append(np.arange(first, last, dtype=np.int32))
        for name, gathered in self._headers.items():
            gathered.append(headers[name])
        for at, column in self._bytes.items():
            column.add(batch, rows, at)
        self.rows += last - first

    def take(self) -> pa.RecordBatch:
        """Return all collected rows, and start again. There must be at least one row."""
        arrays = [self._array(name) for name in self._names]
        self._counts, self._facts, self._numbers, self._positions = [], [], [], []
        self._headers = {name: [] for name in self._headers}
        self.rows = 0
        return pa.RecordBatch.from_arrays(arrays, self._names)

    def _array(self, name: str) -> pa.Array:
        if name in _OF_BATCH:
            value_of, kind = _OF_BATCH[name]
            return _repeated(pa.array([value_of(facts) for facts in self._facts], kind), self._counts)
        if name in _NUMBERS:
            row, width = _NUMBERS[name]
            return pa.array(np.concatenate([columns[row] for columns in self._numbers]).astype(width, copy=False))
        if name in _BYTES:
            return self._bytes[_BYTES[name]].take()
        if name in self._headers:
            return pa.concat_arrays(self._headers[name])
        if name == "batch_position":
            return pa.array(np.concatenate(self._positions))
        if name == "partition":
            return pa.array(np.full(self.rows, self._of.partition, np.int32))
        return _repeated_text(self._of.topic, self.rows)

    def _headers_of(self, batch: DecodedBatch, rows: slice, name: str) -> pa.Array:
        sizes = batch.columns[_HEADERS + 1, rows]
        if (sizes <= _NO_HEADERS_BYTES).all():
            return pa.nulls(len(sizes), _HEADERS_TYPES[name])
        places = batch.columns[_HEADERS, rows]
        found = [
            self._headers_at(batch, int(place), int(size)) if size > _NO_HEADERS_BYTES else None
            for place, size in zip(places, sizes, strict=True)
        ]
        if name == "headers":
            found = [
                headers and [{**header, "key": _as_java_decodes(header["key"])} for header in headers]
                for headers in found
            ]
        return pa.array(found, _HEADERS_TYPES[name])

    def _headers_at(self, batch: DecodedBatch, place: int, size: int) -> list[dict[str, Any]]:
        found = read_headers(batch.payload, place, place + size)
        if found is None:
            raise BrokenRecords(f"headers in the batch at offset {batch.facts.base_offset} are broken")
        return [{"key": name, "value": value} for name, value in found]


def _as_java_decodes(name: bytes) -> str:
    """Decode UTF-8 as Java's `String` does, because Spark's own source uses it.

    Java replaces half of a surrogate pair with one character; Python replaces each of its bytes.
    """
    try:
        return name.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(_REPLACEMENT, name).decode(errors="replace")


def _repeated_text(text: str, count: int) -> pa.Array:
    """Return the same string in every row. Building the buffer at once is faster than Arrow's copies."""
    data = text.encode()
    ends = np.arange(0, (count + 1) * len(data), len(data), dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(ends), pa.py_buffer(data * count)])


def _repeated(values: pa.Array, counts: Sequence[int]) -> pa.Array:
    """Repeat each value as often as its count."""
    return values.take(pa.array(np.repeat(np.arange(len(counts)), counts)))
