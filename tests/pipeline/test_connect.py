"""With Spark Connect, whose driver is another process, the raw source works, and jobs end with a one-line error."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sluicegate.pipeline.commands.spark import NoSession, session
from tests.integration.topics import create_topic
from tests.pipeline.commands import ENVIRONMENT
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import RawClient, topic_data

pytestmark = pytest.mark.long

_NANOSECONDS = 1_790_000_000_000_000_000
_APPENDED = 1_790_000_000_200
_PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from sluicegate.pipeline import TopicSource, diagnose, in_bounds, profile, unit_of
from sluicegate.pipeline.commands.spark import NoSession

bootstrap, topic, out = sys.argv[1:]
spark = SparkSession.builder.remote("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.dataSource.register(TopicSource)
read = spark.read.format("sluicegate").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
appended = f.lit({appended})
rows = (
    read.load()
    .withColumn("unit", unit_of("timestamp", appended))
    .withColumn("good", in_bounds("timestamp", appended, 86_400_000, 3_600_000))
    .withColumn("told", diagnose("timestamp", appended))
    .orderBy("offset")
    .select("timestamp", "unit", "good", "told")
    .collect()
)
try:
    profile(spark, bootstrap, topic, out)
except NoSession as error:
    told = str(error)
print(json.dumps([[list(row) for row in rows], told]))
spark.stop()
""".replace("{appended}", str(_APPENDED))


@pytest.mark.timeout(300)
def test_functions_and_raw_source_work_in_spark_connect_but_jobs_are_rejected(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    topic = create_topic(kafka_bootstrap, {"message.timestamp.after.max.ms": str(2**63 - 1)}, 1, prefix="connect")
    with RawClient(kafka_bootstrap) as client:
        client.produce(9, [topic_data(topic, (0, batch([Rec(_NANOSECONDS), Rec(_APPENDED - 200)])))])

    report = subprocess.run(
        [sys.executable, "-c", _PROGRAM, kafka_bootstrap, topic, str(tmp_path / "out")],
        env=ENVIRONMENT | {"PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert report.returncode == 0, report.stderr[-4000:]
    rows, rejection = json.loads(report.stdout.splitlines()[-1])
    assert rows == [
        [_NANOSECONDS, "nanoseconds", False, "looks like nanoseconds: as milliseconds it is 0.2 s ago"],
        [_APPENDED - 200, None, True, "is 0.2 s ago"],
    ]
    assert "Spark Connect" in rejection and "SparkSession.builder.master" in rejection
    assert not (tmp_path / "out").exists()


def test_a_command_rejects_an_environment_of_spark_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")

    with pytest.raises(NoSession, match=r"SPARK_REMOTE is set, and .*: unset it"):
        session("profile", None)
