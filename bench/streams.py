"""Generates loads of many records, with real producers and consumers, in a closed loop or at a fixed rate."""

import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from bench.targets import KAFKA_CLASS_PATH, Target
from tests.broker.child_processes import killed_with_parent
from tests.integration.topics import create_topic

MB = 1 << 20
_PARTITIONS = 3
_SUMMARY = re.compile(r"(\d+) records sent, ([\d.]+) records/sec.* (\d+) ms 99th, (\d+) ms 99\.9th\.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Stream:
    """Records of `size` bytes in batches of up to `batch_bytes`. A run sends `megabytes` of them."""

    name: str
    size: int
    codec: str
    batch_bytes: int
    megabytes: int

    @property
    def records(self) -> int:
        """Return the number of records that a run sends."""
        return self.megabytes * MB // self.size


@dataclass(slots=True)
class Run:
    """One run of a load through one target. Times are in ms."""

    megabytes: float
    seconds: float
    requests: int = 0
    cpu_seconds: float = 0.0
    resident_bytes: int = 0
    latencies: dict[str, float] = field(default_factory=dict)


def new_topic(broker: str, settings: dict[str, str]) -> str:
    """Create a topic and wait for its leaders. By default, its retention keeps the disk from filling up."""
    bounded = {"retention.bytes": str(200 * MB), "segment.bytes": str(50 * MB), "file.delete.delay.ms": "1000"}
    return create_topic(broker, bounded | settings, _PARTITIONS, prefix="bench")


def java_producer(target: Target, topic: str, stream: Stream) -> Run:
    """Run Kafka's own load tool as fast as possible. Raises RuntimeError if it does not send everything."""
    properties = [
        f"compression.type={stream.codec}",
        f"batch.size={stream.batch_bytes}",
        "linger.ms=5",
        "acks=all",
        "buffer.memory=33554432",
    ]
    command = ["java", "-Xmx384m", "-cp", KAFKA_CLASS_PATH, "org.apache.kafka.tools.ProducerPerformance"]
    command += ["--bootstrap-server", target.bootstrap, "--topic", topic, "--num-records", str(stream.records)]
    command += ["--throughput", "-1", "--record-size", str(stream.size), "--command-property", *properties]
    completed = subprocess.run(killed_with_parent(command), capture_output=True, text=True, timeout=300, check=False)
    found = _SUMMARY.search(completed.stdout.strip().splitlines()[-1] if completed.stdout.strip() else "")
    if found is None or int(found[1]) != stream.records:
        raise RuntimeError(
            f"the load tool failed through {target.name}:\n{(completed.stdout + completed.stderr)[-2000:]}"
        )
    megabytes = stream.records * stream.size / MB
    return Run(megabytes, stream.records / float(found[2]))


class _Failed(Exception):
    pass


def _producer(target: Target, stream: Stream) -> Producer:
    return Producer(
        {
            "bootstrap.servers": target.bootstrap,
            "compression.type": stream.codec,
            "batch.size": stream.batch_bytes,
            "linger.ms": 5,
            "acks": "all",
            "queue.buffering.max.messages": 1_000_000,
        }
    )


def librdkafka_producer(target: Target, topic: str, stream: Stream, values: Sequence[bytes] = ()) -> Run:
    """Run librdkafka's producer as fast as Python can feed it, with the values in turn, or one value of letters."""
    producer = _producer(target, stream)
    values = values or [_letters(stream.size)]
    started = time.perf_counter()
    for i in range(stream.records):
        while True:
            try:
                producer.produce(topic, values[i % len(values)], partition=i // 64 % _PARTITIONS)
                break
            except BufferError:
                producer.poll(0.01)
    if producer.flush(120):
        raise _Failed(f"{target.name}: not everything was delivered")
    return Run(stream.records * stream.size / MB, time.perf_counter() - started)


def at_fixed_rate(target: Target, topic: str, stream: Stream, mb_per_second: float, seconds: float) -> Run:
    """Run an open loop: records leave on schedule, whatever the responses. Latency is from send to acknowledgement."""
    producer, value = _producer(target, stream), _letters(stream.size)
    latencies: list[float] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise _Failed(f"{target.name}: {error}")
        latencies.append((message.latency() or 0.0) * 1000)

    tick = 0.005
    per_tick = max(1, round(mb_per_second * MB * tick / stream.size))
    ticks = int(seconds / tick)
    started = time.perf_counter()
    for number in range(ticks):
        for i in range(per_tick):
            producer.produce(topic, value, partition=i % _PARTITIONS, on_delivery=delivered)
        while (left := started + (number + 1) * tick - time.perf_counter()) > 0:
            producer.poll(left)
    if producer.flush(60):
        raise _Failed(f"{target.name}: not everything was delivered")
    warm = latencies[len(latencies) // 5 :]
    return Run(ticks * per_tick * stream.size / MB, time.perf_counter() - started, latencies=percentiles(warm))


def consume(target: Target, topic: str, megabytes: int) -> Run:
    """Run librdkafka's consumer from the beginning until it has read `megabytes` of values."""
    consumer = Consumer(
        {
            "bootstrap.servers": target.bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.max.bytes": 50 * MB,
            "queued.max.messages.kbytes": 256 * 1024,
            "check.crcs": False,
        }
    )
    consumer.assign([TopicPartition(topic, p, 0) for p in range(_PARTITIONS)])
    got, wanted = 0, megabytes * MB
    started = time.perf_counter()
    while got < wanted:
        messages = consumer.consume(10_000, timeout=10)
        if not messages:
            raise _Failed(f"{target.name}: nothing more to read after {got} bytes")
        got += sum(len(message) for message in messages)
    seconds = time.perf_counter() - started
    consumer.close()
    return Run(got / MB, seconds)


def percentiles(latencies: Sequence[float]) -> dict[str, float]:
    """Return p50, p99 and p99.9 in the given unit."""
    ordered = sorted(latencies)
    return {
        name: ordered[min(len(ordered) - 1, int(len(ordered) * share))]
        for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))
    }


def _letters(size: int) -> bytes:
    """Return a value that compresses a little."""
    return bytes(97 + (i * i * 31 + i // 7) % 26 for i in range(size))
