"""`sluicegate dead-letters redrive` writes each record once and in order, however often the runs and the broker die."""

import os
import random
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.broker.fixtures import run_kafka
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import COMMAND
from tests.dead_letters.desk import configuration, letters_for, new_topic, planned, stored, write
from tests.oracle.kafka_java import KAFKA_NEW

PARTITIONS = 3
KILLS = 10
BROKER_KILLS = (3, 7)
WRITING_SECONDS = 30


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Kafka]:
    """Yield a broker that the test may kill."""
    yield from run_kafka(Kafka(KAFKA_NEW, tmp_path / "kafka"))


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("records", [1_000_000 if os.environ.get("SLUICEGATE_THOROUGH") else 15_000])
def test_killed_redrives_write_each_record_once_and_in_order(records: int, kafka: Kafka, tmp_path: Path) -> None:
    original, dead = new_topic(kafka.bootstrap, "orders", PARTITIONS), new_topic(kafka.bootstrap, "dead", 2)
    by_target = [letters_for(original, each) for each in range(PARTITIONS)]
    for partition in range(2):
        some = range(partition, records, 2)
        rows = [(f"{i % 100}".encode(), f"{i}".encode(), by_target[i % 100 % PARTITIONS]) for i in some]
        write(kafka.bootstrap, dead, rows, partition)
    apply, plan = planned(dead, configuration(tmp_path, kafka.bootstrap))
    assert plan["redrive"] == {original: records}

    kills = killed_runs(kafka, apply, original, records)
    done = subprocess.run([COMMAND, "dead-letters", *apply], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    found = stored(kafka.bootstrap, original)
    assert sorted(int(each.value()) for each in found) == list(range(records))
    by_key = defaultdict(list)
    for each in found:
        by_key[each.key(), int(each.value()) % 2].append(int(each.value()))
    assert all(values == sorted(values) for values in by_key.values())
    assert kills == KILLS


def killed_runs(kafka: Kafka, apply: list[str], topic: str, records: int) -> int:
    """Kill (SIGKILL) runs after their first records, half of them at once and half at a random moment of a second.

    In two runs, the broker is killed and started again before that. Return the number of killed runs.
    """
    chance = random.Random(1)
    rate = ["--rate", str(records / WRITING_SECONDS)]
    kills = 0
    for run in range(KILLS):
        before = end_of(kafka.bootstrap, topic)
        process = subprocess.Popen([COMMAND, "dead-letters", *apply, *rate], stdout=subprocess.DEVNULL)
        wait_for_records(kafka, topic, before, process)
        if run in BROKER_KILLS:
            kafka.kill(kafka.nodes[0])
            time.sleep(chance.random())
            kafka.start_node(kafka.nodes[0])
            kafka.wait_until_up(kafka.nodes[0])
            wait_for_records(kafka, topic, end_of(kafka.bootstrap, topic), process)
        elif run % 2:
            time.sleep(chance.random())
        if process.poll() is None:
            kills += 1
            process.send_signal(signal.SIGKILL)
        process.wait()
    return kills


def wait_for_records(kafka: Kafka, topic: str, before: int, process: "subprocess.Popen[bytes]") -> None:
    """Wait until the topic has more records than before, also in open transactions, or the process has ended."""
    while end_of(kafka.bootstrap, topic) <= before and process.poll() is None:
        time.sleep(0.01)  # the run writes in its own time


def end_of(bootstrap: str, topic: str) -> int:
    """Return the sum of the ends of a topic's partitions, with open transactions."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_uncommitted"})
    try:
        while True:
            try:
                return sum(
                    consumer.get_watermark_offsets(TopicPartition(topic, each), 10)[1] for each in range(PARTITIONS)
                )
            except KafkaException:
                time.sleep(0.1)  # the broker is starting
    finally:
        consumer.close()
