"""The files that `extract` writes have the right content and encoding."""

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sluicegate.pipeline.jobs.extract.built_in import BuiltInExtractor
from sluicegate.pipeline.jobs.extract.parquet_files import COLUMNS, ExtractChunk, OutputFolder, file_name, write_chunk
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.source.options import source_options
from sluicegate.pipeline.source.topics import Topics
from tests.integration.topics import create_topic
from tests.pipeline.polluted import UNLIMITED
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import RawClient, topic_data

NOW, RECORDS = 1_764_000_000_000, 100


def extracted_file(bootstrap: str, values: list[bytes], folder: Path) -> pq.ParquetFile:
    topic = create_topic(bootstrap, UNLIMITED, 1)
    with RawClient(bootstrap) as client:
        records = [Rec(NOW + i, b"k%d" % i, value) for i, value in enumerate(values)]
        client.produce(9, [topic_data(topic, (0, batch(records)))])
    options = source_options(Topics(bootstrap, (topic,)).options | {"columns": COLUMNS})
    of = TopicPartition(topic, 0)
    place = OutputFolder(folder.as_uri())

    (message,) = write_chunk(
        options, BuiltInExtractor("fail"), place, place, ExtractChunk(OffsetRange(of, 0, len(values)), -1)
    )

    counts = {"records": len(values), "skipped": 0, "too_late": 0}
    assert message.to_pylist() == [{"topic": topic, "partition": 0, **counts, "highest": NOW + len(values) - 1}]
    return pq.ParquetFile(folder / file_name(of))


@pytest.mark.parametrize(
    ("values", "codec"),
    [
        ([random.Random(7).randbytes(100)] * RECORDS, "SNAPPY"),
        ([random.Random(i).randbytes(100) for i in range(RECORDS)], "UNCOMPRESSED"),
        ([random.Random(i).randbytes(10) for i in range(RECORDS)], "SNAPPY"),  # too few rows to compare
    ],
)
def test_values_are_compressed_if_that_makes_them_smaller(
    kafka_bootstrap: str, tmp_path: Path, values: list[bytes], codec: str
) -> None:
    file = extracted_file(kafka_bootstrap, values, tmp_path)

    columns = [file.metadata.row_group(0).column(i) for i in range(file.metadata.num_columns)]
    assert {column.path_in_schema: column.compression for column in columns} == dict.fromkeys(
        ("topic", "partition", "offset", "timestamp", "timestamp_type", "key", "event_time"), "SNAPPY"
    ) | {"value": codec}
    assert file.read().column("value").to_pylist() == values


def test_parquet_files_have_standard_types_and_all_rows(kafka_bootstrap: str, tmp_path: Path) -> None:
    file = extracted_file(kafka_bootstrap, [b"v"] * RECORDS, tmp_path)

    assert file.schema_arrow == pa.schema(
        {
            "topic": pa.string(),
            "partition": pa.int32(),
            "offset": pa.int64(),
            "timestamp": pa.int64(),
            "timestamp_type": pa.int32(),
            "key": pa.binary(),
            "value": pa.binary(),
            "event_time": pa.timestamp("us", tz="UTC"),
        }
    )
    statistics = {
        file.metadata.schema.column(i).name
        for i in range(file.metadata.num_columns)
        if file.metadata.row_group(0).column(i).statistics is not None
    }
    assert {"offset", "timestamp", "event_time"} <= statistics
    assert not {"key", "value"} & statistics
