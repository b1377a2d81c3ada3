"""Tasks write files with Arrow to any place that Spark can write to, with Spark's own settings."""

from pathlib import Path

import pytest
from pyarrow import fs
from pyspark.sql import SparkSession

from sluicegate.pipeline.jobs.extract.parquet_files import OutputFolder, file_name, output_folder
from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.pipeline.runs.results import BadFolder, Results

OWN_STORE = {
    "fs.s3a.endpoint": "http://127.0.0.1:9000",
    "fs.s3a.access.key": "who",
    "fs.s3a.secret.key": "a secret",
    "fs.s3a.path.style.access": "true",
    "fs.s3a.bucket.other.endpoint": "store.example:443",
}


def test_an_s3_store_is_reached_with_the_settings_of_spark() -> None:
    place = output_folder("s3a://audit/out", OWN_STORE.get).within("records")

    files, path = place.file_system()

    assert place.s3 == {
        "endpoint_override": "127.0.0.1:9000",
        "scheme": "http",
        "access_key": "who",
        "secret_key": "a secret",
        "force_virtual_addressing": False,
        "region": "us-east-1",
        "connect_timeout": 30.0,
        "request_timeout": 200.0,
    }
    assert (files.type_name, path) == ("s3", "audit/out/records")
    assert "a secret" not in repr(place)


def test_bucket_settings_override_general_s3_settings() -> None:
    found = output_folder("s3a://other/out", OWN_STORE.get).s3

    assert (found["scheme"], found["endpoint_override"]) == ("https", "store.example:443")


def test_a_local_output_folder_uses_no_s3_settings(tmp_path: Path) -> None:
    files, path = output_folder(f"file:{tmp_path}", OWN_STORE.get).within("records").file_system()

    assert isinstance(files, fs.LocalFileSystem)
    assert path == f"{tmp_path}/records"


def test_rejects_a_scheme_that_arrow_does_not_know() -> None:
    with pytest.raises(ValueError, match="nosuch"):
        OutputFolder("nosuch://x/y").file_system()


def test_accepts_topic_name_of_maximum_file_name_length() -> None:
    long = [TopicPartition(name, 7) for name in ("t" * 248 + "1", "t" * 248 + "2")]

    names = {file_name(of) for of in long}

    assert len(names) == 2
    assert all(len(f".{name}.part") <= 255 for name in names)
    assert file_name(TopicPartition("orders", 7)) == "part-orders-00007.parquet"


@pytest.mark.parametrize(
    ("out", "output"),
    [
        ("s3a://b/out", r"Spark has no connector for s3a:// here: add hadoop-aws and its dependencies to spark\.jars"),
        ("abfs://c@a.dfs.core.windows.net/x", "no connector for abfs:// here: add hadoop-azure and its dependencies"),
        ("gs://b/out", "Spark has no connector for gs:// here: add gcs-connector and its dependencies"),
        ("s3://b/out", "Use s3a:// instead of s3://"),
        ("nosuch://b/out", r"no connector for nosuch:// here \(docs/how-to/spark-platforms\.md\), or give a folder"),
        ("hdfs://127.0.0.1:1/x", "cannot be used: .*Connection refused"),
    ],
)
def test_missing_connector_is_reported_in_one_line_with_fix(spark: SparkSession, out: str, output: str) -> None:
    with pytest.raises(BadFolder, match=output) as found:
        Results(spark, out)

    assert len(str(found.value).splitlines()) == 1


def test_accepts_a_path_with_the_scheme_file(spark: SparkSession, tmp_path: Path) -> None:
    results = Results(spark, f"file://{tmp_path}/out")

    results.make()

    assert (tmp_path / "out").is_dir()
