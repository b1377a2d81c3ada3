"""Writes one partition's records of a batch, with event time, as Parquet files from the task itself.

Passing rows through Spark's own writer costs several times as much as reading them.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from sluicegate.pipeline.jobs.extract.built_in import BuiltInExtractor, Int64s
from sluicegate.pipeline.jobs.extract.event_time import EVENT_TIME, LATEST_MS
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.source.options import SourceOptions
from sluicegate.pipeline.source.reading import read_rows

_AS_ARROW = {"access.key": "access_key", "secret.key": "secret_key", "session.token": "session_token"}
_REGIONLESS = "us-east-1"
"""The region for a store with its own endpoint, if no region is configured."""
_TIMEOUTS: dict[str, str | bool | float] = {"connect_timeout": 30.0, "request_timeout": 200.0}
"""Timeouts in seconds, as in Hadoop. Arrow's default of three seconds is too short for a busy store."""


class OutputFolderError(Exception):
    """Raised if a file cannot be written. The message names the file and the reason."""


@dataclass(frozen=True, slots=True)
class OutputFolder:
    """A folder for output. `s3` contains Arrow's options if the folder is in S3 or a compatible store."""

    uri: str
    s3: dict[str, str | bool | float] = field(default_factory=dict, repr=False)

    def within(self, name: str) -> "OutputFolder":
        """Return a folder or file in this folder."""
        return OutputFolder(f"{self.uri.rstrip('/')}/{name}", self.s3)

    def file_system(self) -> tuple[fs.FileSystem, str]:
        """Return Arrow's file system and the path in it.

        Raises ValueError, OSError and ImportError if Arrow does not support the file system.
        """
        scheme, _, rest = self.uri.partition(":")
        if scheme == "file":
            return fs.LocalFileSystem(), "/" + rest.lstrip("/")
        if scheme == "s3a" and self.s3:
            return fs.S3FileSystem(**self.s3, allow_delayed_open=True), rest.lstrip("/")
        found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(f"s3:{rest}" if scheme == "s3a" else self.uri)
        return found


def output_folder(uri: str, setting: Callable[[str], str | None]) -> OutputFolder:
    """Return the folder with the credentials that Spark uses. `setting` returns the value of a Hadoop setting."""
    scheme, _, rest = uri.partition("://")
    if scheme != "s3a":
        return OutputFolder(uri)
    bucket = rest.partition("/")[0]

    def hadoop(name: str) -> str | None:
        return setting(f"fs.s3a.bucket.{bucket}.{name}") or setting(f"fs.s3a.{name}")

    options: dict[str, str | bool | float] = {}
    for name, arrow_name in _AS_ARROW.items():
        if value := hadoop(name):
            options[arrow_name] = value
    region, endpoint = hadoop("endpoint.region"), hadoop("endpoint")
    if endpoint:
        encrypted = "https" if (hadoop("connection.ssl.enabled") or "true") == "true" else "http"
        options["scheme"], _, options["endpoint_override"] = (
            endpoint.partition("://") if "://" in endpoint else (encrypted, "", endpoint)
        )
        options["force_virtual_addressing"] = (hadoop("path.style.access") or "false") != "true"
        region = region or _REGIONLESS
    if region:
        options["region"] = region
    return OutputFolder(uri, options | _TIMEOUTS if options else {})


COLUMNS = "partition,offset,timestamp,timestamp_type,key,value"
DDL = "topic string, partition int, records bigint, skipped bigint, too_late bigint, highest bigint"
_SKIPPED = ("topic", "partition", "offset", "timestamp")
# Keys and values rarely repeat, so dictionaries do not help, and no reader uses their statistics.
_DICTIONARIES = ["topic", "partition", "timestamp_type"]
_NUMBERS = ["partition", "offset", "timestamp", "timestamp_type", EVENT_TIME]
_BYTES = ("key", "value")
_CODEC = "snappy"
_LEAST_SAMPLE_BYTES, _MOST_SAMPLE_BYTES = 1 << 12, 1 << 20
_WORTH_IT = 0.9
_ROW_GROUP_ROWS = 512 * 1024
_ROW_GROUP_BYTES = 64 << 20
_MICROS = 1000
_LONGEST_NAME = 180


@dataclass(frozen=True, slots=True)
class ExtractChunk:
    """The range that one task extracts. `highest` is the partition's highest event time (ms) before this range."""

    wanted: OffsetRange
    highest: int


def write_chunk(
    options: SourceOptions,
    extractor: BuiltInExtractor,
    records: OutputFolder,
    skipped: OutputFolder,
    chunk: ExtractChunk,
) -> Iterator[pa.RecordBatch]:
    """Write the files and yield a row with their counts (`DDL`). `records` and `skipped` are folders.

    Replaces the files of an earlier attempt. Raises InvalidTimestamp, OutputFolderError and the errors of reading.
    """
    try:
        yield from _written(options, extractor, records, skipped, chunk)
    except OSError as error:
        raise OutputFolderError(f"{records.uri}: cannot write a file: {' '.join(str(error).split())}") from error


def _written(
    options: SourceOptions,
    extractor: BuiltInExtractor,
    records: OutputFolder,
    skipped: OutputFolder,
    chunk: ExtractChunk,
) -> Iterator[pa.RecordBatch]:
    of, highest, counts = chunk.wanted.of, chunk.highest, [0, 0, 0]
    name = file_name(of)
    with _File(records.within(name)) as kept, _File(skipped.within(name)) as left_out:
        for rows in read_rows(options, chunk.wanted):
            offsets, times = _numbers(rows, "offset"), _numbers(rows, "timestamp")
            found = extractor.event_times(of, offsets, times, highest, time.time_ns() // 1_000_000)
            highest = max(highest, int(found.max()))
            valid = found >= 0
            named = rows.add_column(0, "topic", _all_of(of.topic, rows.num_rows))
            whole = named.append_column(EVENT_TIME, _as_timestamps(found))
            if not valid.all():
                left_out.add(named.select(_SKIPPED).filter(pa.array(~valid)))
                whole = whole.filter(pa.array(valid))
            kept.add(whole)
            counts[0] += whole.num_rows
            counts[1] += rows.num_rows - whole.num_rows
            counts[2] += int((times > LATEST_MS).sum()) if extractor.reads_times else 0
    columns = ([of.topic], [of.partition], *([count] for count in counts), [highest])
    kinds = (pa.string(), pa.int32(), *[pa.int64()] * 4)
    arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
    yield pa.RecordBatch.from_arrays(arrays, [column.split()[0] for column in DDL.split(", ")])


def file_name(of: TopicPartition) -> str:
    """Return the name of a partition's file.

    Long topic names are shortened, because they may be as long as a file name may be (249).
    """
    topic = of.topic
    if len(topic) > _LONGEST_NAME:
        topic = f"{topic[:_LONGEST_NAME]}-{sha256(topic.encode()).hexdigest()[:16]}"
    return f"part-{topic}-{of.partition:05}.parquet"


class _File:
    """A Parquet file that is created with its first row and gets its final name when it is complete."""

    def __init__(self, place: OutputFolder) -> None:
        self._files, self._path = place.file_system()
        folder, _, name = self._path.rpartition("/")
        self._folder, self._part = folder, f"{folder}/.{name}.part"
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Append rows."""
        if rows.num_rows == 0:
            return
        self._waiting.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows >= _ROW_GROUP_ROWS or self._bytes >= _ROW_GROUP_BYTES:
            self._write()

    def _write(self) -> None:
        table = pa.Table.from_batches(self._waiting)
        if self._writer is None:
            self._files.create_dir(self._folder, recursive=True)
            self._writer = self._writer_of(self._waiting[0])
        self._writer.write_table(table, row_group_size=self._rows)
        self._waiting, self._rows, self._bytes = [], 0, 0

    def _writer_of(self, first: pa.RecordBatch) -> pq.ParquetWriter:
        names = first.schema.names
        codecs = {name: _codec_for(first.column(name)) if name in _BYTES else _CODEC for name in names}
        return pq.ParquetWriter(
            self._part,
            first.schema,
            filesystem=self._files,
            use_dictionary=[name for name in _DICTIONARIES if name in names],
            write_statistics=[name for name in _NUMBERS if name in names],
            compression=codecs,
            store_schema=False,  # with Arrow's schema Spark would read a different type for the topic
        )

    def __enter__(self) -> "_File":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None and self._waiting:
            self._write()
        if self._writer is not None:
            self._writer.close()
            if kind is None:
                self._files.move(self._part, self._path)


def _codec_for(some: pa.Array) -> str:
    """Return the codec for a file, which is none if the data cannot be compressed.

    Random, encrypted or compressed data cannot be compressed, and trying to do so would cost a third of the write.
    """
    data = some.buffers()[2]
    if data is None or data.size < _LEAST_SAMPLE_BYTES:
        return _CODEC
    sample = data.slice(0, min(_MOST_SAMPLE_BYTES, data.size))
    return "none" if pa.compress(sample, _CODEC).size > _WORTH_IT * sample.size else _CODEC


def _all_of(name: str, count: int) -> pa.DictionaryArray:
    """Return a dictionary array, so that Arrow does not look up the same name for every row."""
    return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array([name]))


def _numbers(rows: pa.RecordBatch, name: str) -> Int64s:
    return np.asarray(rows.column(name).to_numpy())


def _as_timestamps(times_ms: Int64s) -> pa.Array:
    """Return timestamps, with null for times after Spark's latest timestamp."""
    late = times_ms > LATEST_MS
    return pa.array(np.where(late, 0, times_ms) * _MICROS, mask=late).cast(pa.timestamp("us", tz="UTC"))
