"""Runs a broker with remote storage for old segments (KIP-405), which is slow if a test requests this."""

from pathlib import Path

from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.integration.topics import create_topic
from tests.oracle.java_program import compiled
from tests.oracle.kafka_java import KAFKA_NEW, kafka_folder
from tests.pipeline.polluted import UNLIMITED
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import RawClient, topic_data

_STORE = Path(__file__).with_name("SlowRemoteStore.java")
_TIERED = {"remote.storage.enable": "true", "local.retention.bytes": "1", "segment.bytes": str(1 << 20)}
_VALUE_BYTES, _BATCH = 1000, 100


def tiered_kafka(folder: Path, slow_ms: int) -> Kafka:
    """Return a broker to start. Every second read of a remote segment takes `slow_ms`."""
    classes = compiled(kafka_folder(KAFKA_NEW), _STORE)
    remote = {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": "SlowRemoteStore",
        "remote.log.storage.manager.class.path": f"{classes}/",
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "remote.log.manager.task.interval.ms": "200",
        "log.retention.check.interval.ms": "500",
        "log.initial.task.delay.ms": "500",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
        "rsm.config.folder": str(folder / "remote"),
        "rsm.config.slow.ms": str(slow_ms),
    }
    return Kafka(KAFKA_NEW, folder, settings=remote)


def tiered_topic(kafka: Kafka, timestamps: list[int]) -> str:
    """Create a topic of one partition with these times; all segments except the last are only in remote storage."""
    topic = plain_topic(kafka, timestamps, UNLIMITED | _TIERED)
    enough = len(timestamps) // 2
    eventually(lambda: local_start(kafka, topic) > enough, 60, "segments to be in remote storage only")
    return topic


def plain_topic(kafka: Kafka, timestamps: list[int], settings: dict[str, str] | None = None) -> str:
    """Create a topic in which each record's value is its number."""
    topic = create_topic(kafka.bootstrap, settings or UNLIMITED, 1)
    with RawClient(kafka.bootstrap) as client:
        for first in range(0, len(timestamps), _BATCH):
            times = timestamps[first : first + _BATCH]
            records = [Rec(t, b"%d" % (i % 9), b"%0*d" % (_VALUE_BYTES, first + i)) for i, t in enumerate(times)]
            client.produce(9, [topic_data(topic, (0, batch(records)))])
    return topic


def local_start(kafka: Kafka, topic: str) -> int:
    """Return the first offset of the local log; the name of a segment's file is its first offset."""
    (node,) = kafka.nodes
    segments = (kafka.folder / f"data-{node.node_id}" / f"{topic}-0").glob("*.log")
    return min(int(file.stem) for file in segments)
