"""Writes a topic with known invalid timestamps.

Java's load tool writes millions of good records. At the same time, several clients write records whose timestamps are
each wrong in a different way.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from confluent_kafka import Producer

from bench import streams
from bench.streams import MB, Stream
from bench.targets import Target
from tests.integration.topics import create_topic
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import RawClient, topic_data

_SIZE = 100
_UNLIMITED = str(2**63 - 1)
_SETTINGS = {
    "message.timestamp.after.max.ms": _UNLIMITED,
    "message.timestamp.before.max.ms": _UNLIMITED,
    "retention.ms": "-1",  # otherwise the broker deletes a segment of zeros, which is 56 years old, within minutes
}
_TWO_DAYS_MS = 2 * 86_400_000
_PAUSE_SECONDS = 0.02
_BATCH = 100


@dataclass(frozen=True, slots=True)
class PollutedTopic:
    """A polluted topic. `damage` contains the number of records with each kind of invalid timestamp.

    `good` is the number of all other records.
    """

    name: str
    good: int
    damage: dict[str, int]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


_CLIENTS: dict[str, tuple[str, Callable[[], int]]] = {
    "nanoseconds": ("zstd", time.time_ns),
    "microseconds": ("gzip", lambda: time.time_ns() // 1000),
    "seconds": ("none", lambda: time.time_ns() // 1_000_000_000),
    "future": ("snappy", lambda: _now_ms() + _TWO_DAYS_MS),
}


def polluted_topic(address: str, partitions: int, millions: float, damaged: int) -> PollutedTopic:
    """Write the topic. `damaged` is the number of records of each of the five kinds."""
    topic = create_topic(address, _SETTINGS, partitions, prefix="polluted")
    stream = Stream("good", _SIZE, "lz4", 65_536, round(millions * 1_000_000) * _SIZE // MB)
    with ThreadPoolExecutor(8) as pool:
        good = pool.submit(streams.java_producer, Target("direct", address, address, None), topic, stream)
        bad = [
            pool.submit(_write, address, topic, partitions, codec, moment, damaged)
            for codec, moment in _CLIENTS.values()
        ]
        zeros = pool.submit(_write_zeros, address, topic, partitions, damaged)
        for each in (good, *bad, zeros):
            each.result()
    return PollutedTopic(topic, stream.records, dict.fromkeys((*_CLIENTS, "zero"), damaged))


def _write(address: str, topic: str, partitions: int, codec: str, moment: Callable[[], int], count: int) -> None:
    producer = Producer({"bootstrap.servers": address, "compression.type": codec, "enable.idempotence": True})
    for i in range(count):
        if i % _BATCH == 0:
            producer.poll(_PAUSE_SECONDS)
        producer.produce(topic, b"%064d" % i, b"key-%d" % (i % 50), i // _BATCH % partitions, timestamp=moment())
    if producer.flush(60):
        raise RuntimeError("not everything was delivered")


def _write_zeros(address: str, topic: str, partitions: int, count: int) -> None:
    """Write records with a timestamp of 0, which client libraries interpret as no timestamp."""
    with RawClient(address) as client:
        for start in range(0, count, _BATCH):
            records = [Rec(0, b"key-%d" % (i % 50), b"%064d" % i) for i in range(start, min(start + _BATCH, count))]
            client.produce(9, [topic_data(topic, (start // _BATCH % partitions, batch(records)))])
            time.sleep(_PAUSE_SECONDS)
