"""Jobs write results to an object store (the tests' S3 server), with Hadoop's connector and with Arrow."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pyspark
import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs

from sluicegate.pipeline.runs.tables import minor_of
from tests.pipeline.commands import ENVIRONMENT, RepeatedCommand
from tests.pipeline.polluted import HOUR, PollutedTopic, Polluter
from tests.pipeline.repairs import now_ms

pytestmark = pytest.mark.long

JARS = Path(__file__).parent.parent.parent / ".store" / minor_of(pyspark.__version__)
BUCKET = "audit"


class ObjectStore:
    """The server, and `sluicegate-spark` with a Spark whose spark-defaults.conf has the server's settings."""

    def __init__(self, endpoint: str, folder: Path) -> None:
        settings = {
            "spark.jars": ",".join(str(jar) for jar in sorted(JARS.glob("*.jar"))),
            "spark.hadoop.fs.s3a.endpoint": endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": "who",
            "spark.hadoop.fs.s3a.secret.key": "a-planted-secret",
        }
        (folder / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        self._command = RepeatedCommand({**ENVIRONMENT, "SPARK_CONF_DIR": str(folder)})
        where = urlsplit(endpoint)
        self.files = fs.S3FileSystem(
            access_key="who",
            secret_key="a-planted-secret",
            scheme=where.scheme,
            endpoint_override=where.netloc,
            allow_bucket_creation=True,
        )
        self.files.create_dir(BUCKET)

    def run(self, *arguments: str, status: int = 0) -> str:
        return self._command.run(arguments, status)

    def text(self, name: str) -> str:
        with self.files.open_input_stream(f"{BUCKET}/{name}") as file:
            return bytes(file.read()).decode()

    def row_count(self, table: str) -> int:
        return sum(fragment.count_rows() for fragment in pq.ParquetDataset(f"{BUCKET}/{table}", self.files).fragments)


@pytest.fixture(scope="module")
def object_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield ObjectStore(f"http://{host}:{port}", tmp_path_factory.mktemp("store"))
    finally:
        server.stop()


@pytest.fixture(scope="module")
def polluted_topic(kafka_bootstrap: str) -> PollutedTopic:
    return Polluter(kafka_bootstrap, now_ms(), partitions=2).write(batches=20, span_ms=HOUR)


def test_profile_writes_report_summary_and_tables_to_object_store(
    object_store: ObjectStore, kafka_bootstrap: str, polluted_topic: PollutedTopic
) -> None:
    about = ("--bootstrap", kafka_bootstrap, "--topic", polluted_topic.topic)

    message = object_store.run("profile", *about, "--out", "s3a://audit/profile", "--tables", "s3a://audit/lake")

    found = json.loads(object_store.text("profile/summary.json"))["topics"][polluted_topic.topic]
    assert found["records"] == polluted_topic.records
    assert {kind: n for kind, n in found["damage"].items() if kind != "none" and n} == polluted_topic.counts
    assert polluted_topic.topic in object_store.text("profile/report.html")
    assert object_store.row_count("lake/profile_hours")
    assert "a-planted-secret" not in message


def test_a_repair_with_results_in_an_object_store_is_planned_written_and_verified(
    object_store: ObjectStore, kafka_bootstrap: str, polluted_topic: PollutedTopic
) -> None:
    about = ("--bootstrap", kafka_bootstrap, "--topic", polluted_topic.topic)

    object_store.run("repair", *about, "--out", "s3a://audit/repair")
    planned = json.loads(object_store.text("repair/summary.json"))
    object_store.run("repair", *about, "--out", "s3a://audit/repair", "--apply")
    object_store.run("verify", *about, "--topic", f"{polluted_topic.topic}-clean", "--out", "s3a://audit/verify")

    assert planned["topics"][polluted_topic.topic]["repaired"] == polluted_topic.counts
    assert json.loads(object_store.text("verify/summary.json"))["repairs"] == polluted_topic.counts


def test_extracted_records_are_in_the_object_store_once_after_two_runs(
    object_store: ObjectStore, kafka_bootstrap: str, polluted_topic: PollutedTopic
) -> None:
    about = ("--bootstrap", kafka_bootstrap, "--topic", polluted_topic.topic, "--out", "s3a://audit/events")

    for _ in range(2):
        object_store.run("extract", *about, "--extractor", "previous", "--batch", "1000")

    assert object_store.row_count("events/records") == polluted_topic.records
    found = object_store.files.get_file_info(fs.FileSelector(f"{BUCKET}/events/records", recursive=True))
    assert {file.extension for file in found if file.is_file} == {"parquet"}


def test_write_rejected_by_object_store_is_reported_in_one_line_with_fix(
    object_store: ObjectStore, kafka_bootstrap: str, polluted_topic: PollutedTopic
) -> None:
    about = ("--bootstrap", kafka_bootstrap, "--topic", polluted_topic.topic)

    message = object_store.run("profile", *about, "--out", "s3a://no-such-bucket/profile", status=1)

    assert message.startswith("sluicegate-spark: s3a://no-such-bucket/profile cannot be used: ")
    assert message.rstrip().endswith(". Create the bucket first, or name an existing one")
    assert len(message.splitlines()) == 1
