"""`sluicegate dead-letters redrive` writes each record once and in order, however often runs are killed."""

import os
import random
import signal
import subprocess
import time
from collections import defaultdict
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.broker.proxy_process import COMMAND
from tests.dead_letters.desk import SECONDS, configuration, letters_for, new_topic, planned, stored, write


@pytest.mark.long
@pytest.mark.parametrize("records", [1_000_000 if os.environ.get("SLUICEGATE_THOROUGH") else 3000])
def test_each_record_is_written_once_and_in_order_by_killed_runs(
    records: int, kafka_bootstrap: str, tmp_path: Path
) -> None:
    original, dead = new_topic(kafka_bootstrap, "orders", 3), new_topic(kafka_bootstrap, "dead", 2)
    by_target = [letters_for(original, each) for each in range(3)]
    for partition in range(2):
        some = range(partition, records, 2)
        rows = [(f"{i % 100}".encode(), f"{i}".encode(), by_target[i % 100 % 3]) for i in some]
        write(kafka_bootstrap, dead, rows, partition)
    file = configuration(tmp_path, kafka_bootstrap)
    apply, plan = planned(dead, file)
    assert plan["redrive"] == {original: records}

    kills = killed_runs(kafka_bootstrap, apply, original, records)
    done = subprocess.run([COMMAND, "dead-letters", *apply], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert kills > 0
    found = stored(kafka_bootstrap, original)
    assert sorted(int(each.value()) for each in found) == list(range(records))
    by_key = defaultdict(list)
    for each in found:
        by_key[each.key(), int(each.value()) % 2].append(int(each.value()))
    assert all(values == sorted(values) for values in by_key.values())


def killed_runs(bootstrap: str, apply: list[str], topic: str, records: int) -> int:
    """Kill (SIGKILL) up to ten runs at random moments after their first record; return the number of killed runs."""
    chance = random.Random(1)
    rate = ["--rate", str(records / 15)]
    for kill in range(10):
        before = end_of(bootstrap, topic)
        process = subprocess.Popen([COMMAND, "dead-letters", *apply, *rate], stdout=subprocess.DEVNULL)
        while end_of(bootstrap, topic) == before and process.poll() is None:
            time.sleep(0.05)  # the run writes in its own time
        time.sleep(chance.random())
        if process.poll() is not None:
            return kill
        process.send_signal(signal.SIGKILL)
        process.wait()
    return 10


def end_of(bootstrap: str, topic: str) -> int:
    """Return the sum of the ends of a topic's partitions, with open transactions."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_uncommitted"})
    try:
        return sum(consumer.get_watermark_offsets(TopicPartition(topic, each), SECONDS)[1] for each in range(3))
    finally:
        consumer.close()
