"""Quarantines records with a real proxy, replays them in the Spark session of the tests, and reads the results with an
independent client.
"""

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from confluent_kafka import OFFSET_BEGINNING, OFFSET_INVALID, Consumer, KafkaError, TopicPartition
from pyspark.sql import SparkSession

from sluicegate.config.files.yaml_source import read_file
from sluicegate.config.loading import load
from sluicegate.config.topics import Fix
from sluicegate.pipeline.jobs.replay import job
from sluicegate.pipeline.jobs.replay.request import ReplayRequest
from sluicegate.pipeline.jobs.replay.writing import Headers
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics
from tests.broker.proxy_process import ProxyProcess
from tests.integration.topics import create_topic
from tests.pipeline.polluted import HOUR, UNLIMITED
from tests.wire.batches import LZ4, Rec, batch
from tests.wire.raw_client import RawClient, topic_data


class ConsumedRecord(NamedTuple):
    """A record as a consumer sees it."""

    partition: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


@dataclass
class Quarantine:
    """A proxy that quarantines the bad records of `topic` in `dead`."""

    proxy: ProxyProcess
    topic: str
    dead: str

    @property
    def file(self) -> Path:
        """Return the path of the proxy's configuration."""
        return self.proxy.folder / "sluicegate.yaml"

    def policies(self, folder: Path, **of_topic: Any) -> Path:
        """Write the proxy's configuration with other keys for the topic and without quarantine, and return its path."""
        held = self.proxy.config | {"topics": [{"match": self.topic, **of_topic}]}
        file = folder / "policies.yaml"
        file.write_text(yaml.safe_dump(held, sort_keys=False))
        return file

    def reject(self, partition: int, records: Sequence[Rec]) -> None:
        """Send a batch whose bad records are quarantined."""
        with RawClient(f"127.0.0.1:{self.proxy.broker_port(1)}", timeout=120) as client:
            answer = client.produce(9, [topic_data(self.topic, (partition, batch(records, LZ4)))])
        assert isinstance(answer, dict)
        assert answer["responses"][0]["partition_responses"][0]["error_code"] in (32, 87), answer


def quarantining_proxy(bootstrap: str, folder: Path, cases: Mapping[str, dict[str, Any]]) -> dict[str, Quarantine]:
    """Return a proxy to start that quarantines bad records. Each case has a topic of two partitions with these policy
    keys, and a dead-letter topic of three partitions.
    """
    names = {
        case: (
            create_topic(bootstrap, UNLIMITED, 2, prefix=case),
            create_topic(bootstrap, {}, 3, prefix=f"dead-{case}"),
        )
        for case in cases
    }
    entries = [
        {"match": topic, "message.timestamp.after.max.ms": HOUR, "quarantine": dead, **cases[case]}
        for case, (topic, dead) in names.items()
    ]
    proxy = ProxyProcess(folder, bootstrap, {"topics": entries})
    return {case: Quarantine(proxy, topic, dead) for case, (topic, dead) in names.items()}


def run_replay(
    spark: SparkSession,
    bootstrap: str,
    dead: str,
    file: Path,
    out: Path,
    fix: str | None = None,
    by: str | None = None,
    headers: Headers = Headers.OWN,
    findings: Path | None = None,
) -> dict[str, Any]:
    """Apply a replay and return its summary."""
    question = replay_request_of(file, fix, by, headers, findings)
    work = job.applied_work(spark, Topics(bootstrap, (dead,)), Results(spark, str(out)), question)
    listing = job.list_decisions(spark, work)
    return job.summary_of(work, listing, job.write_listed(spark, work, listing))


def replay_request_of(
    file: Path, fix: str | None, by: str | None, headers: Headers = Headers.OWN, findings: Path | None = None
) -> ReplayRequest:
    """Return the request that the command line would make of these options."""
    fixing: Any = None if fix is None else {"timestamp": fix}
    now_ms, folder = time.time_ns() // 1_000_000, findings and str(findings)
    return ReplayRequest(load(read_file(file), {}).config, fixing and Fix(**fixing), by, headers, now_ms, folder)


def read_back(bootstrap: str, topic: str, *only: int) -> list[ConsumedRecord]:
    """Return all records of a topic, or of some partitions, as a read_committed consumer reads them."""
    client = {"bootstrap.servers": bootstrap, "group.id": uuid.uuid4().hex, "enable.partition.eof": True}
    consumer = Consumer(client | {"isolation.level": "read_committed", "enable.auto.commit": False})
    found: list[ConsumedRecord] = []
    try:
        partitions = only or tuple(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
        unread, until = set(partitions), time.monotonic() + 120
        while unread:
            assert time.monotonic() < until, f"{topic}: partitions {unread} have no end"
            message = consumer.poll(0.5)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error.str()
                unread.discard(message.partition() or 0)
                continue
            place, headers = message.partition(), message.headers()
            _, time_ms = message.timestamp()
            found.append(ConsumedRecord(place or 0, time_ms, message.key(), message.value(), list(headers or [])))
    finally:
        consumer.close()
    return sorted(found, key=lambda each: each.partition)


def replay_progress(bootstrap: str, group: str, topic: str, partitions: int) -> list[int]:
    """Return the offset that a replay has reached in each partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "isolation.level": "read_uncommitted"})
    try:
        found = consumer.committed([TopicPartition(topic, p) for p in range(partitions)], timeout=30)
    finally:
        consumer.close()
    return [0 if place.offset == OFFSET_INVALID else place.offset for place in found]
