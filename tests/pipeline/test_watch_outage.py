"""A watch continues after an outage of its broker."""

import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.broker.child_processes import killed_with_parent
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.oracle.kafka_java import KAFKA_NEW
from tests.pipeline.commands import COMMAND, ENVIRONMENT
from tests.pipeline.polluted import RECORDS
from tests.pipeline.test_watch import Writer, stored_counts

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]


def test_waits_for_a_broker_that_restarts(spark: SparkSession, tmp_path: Path) -> None:
    kafka, out, log = Kafka(KAFKA_NEW, tmp_path / "kafka"), tmp_path / "out", tmp_path / "log"
    try:
        (node,) = kafka.start().nodes
        writer = Writer(kafka.bootstrap)
        writer.write(lambda now: now)
        about = ("--bootstrap", kafka.bootstrap, "--topic", writer.topic, "--out", str(out), "--every-seconds", "15")
        with log.open("wb") as output:
            watch = subprocess.Popen(
                killed_with_parent([COMMAND, "watch", *about, "--master", "local[2]"]),
                stdout=output,
                stderr=output,
                env=ENVIRONMENT,
            )
        try:
            eventually((out / "progress" / "0.json").exists, 600, "a first batch")
            kafka.kill(node)
            eventually(lambda: "retrying in 15 s" in log.read_text(), 300, "a word about the broker")
            kafka.start_node(node)
            kafka.wait_until_up(node)
            writer.write(lambda now: now // 1000)
            eventually((out / "progress" / "1.json").exists, 300, "a batch of newer records")
            eventually(lambda: "damage seconds began" in log.read_text(), what="a word about what began")
            assert watch.poll() is None
        finally:
            watch.kill()
            watch.wait(30)
    finally:
        kafka.stop()

    assert stored_counts(spark, out) == {"none": RECORDS, "seconds": RECORDS}
    assert "Traceback" not in log.read_text()
