"""Writes topics that are hard for the pipeline: unordered times, many small partitions, many producers.

The topics are written batch by batch, because client libraries use one id per producer and write at their own pace.
"""

import random
import time
from collections.abc import Iterable, Iterator

from bench.polluted_topic import PollutedTopic
from tests.integration.topics import create_topic
from tests.wire.batches import LZ4, Rec, batch
from tests.wire.raw_client import RawClient, topic_data

_HOUR_MS = 3_600_000
_MOST = str(2**63 - 1)
_UNLIMITED = {"message.timestamp.after.max.ms": _MOST, "message.timestamp.before.max.ms": _MOST, "retention.ms": "-1"}
_A_REQUEST = 50
_SIZE = 100
_A_BATCH = 560  # the number of records of this size in 64 KiB
_DIFFERENT = 64


def disordered(address: str, partitions: int, records: int) -> PollutedTopic:
    """Write valid records of 100 bytes, with times up to an hour out of order within each lz4 batch."""
    topic = create_topic(address, _UNLIMITED, partitions, prefix="disordered")
    now_ms, chance = time.time_ns() // 1_000_000, random.Random(12)  # noqa: S311  # the same each time
    alike = chance.randbytes(_SIZE // 2)

    def some(count: int) -> bytes:
        times = [now_ms - chance.randrange(_HOUR_MS) for _ in range(count)]
        values = (chance.randbytes(_SIZE // 4).hex().encode() + alike for _ in times)
        return batch([Rec(at, None, value) for at, value in zip(times, values, strict=True)], LZ4)

    whole, rest = divmod(records, _A_BATCH)
    some_batches = [some(_A_BATCH) for _ in range(_DIFFERENT)]
    batches = [(n % partitions, some_batches[n % _DIFFERENT]) for n in range(whole)]
    if rest:
        batches.append((whole % partitions, some(rest)))
    _write(address, topic, batches)
    return PollutedTopic(topic, records, {})


def many_partitions(address: str, partitions: int, records_each: int) -> PollutedTopic:
    """Write partitions in which one record in seven has a timestamp in nanoseconds."""
    topic = create_topic(address, _UNLIMITED, partitions, prefix="partitions")
    start = time.time_ns() // 1_000_000 - _HOUR_MS
    bad = len(range(0, records_each, 7))
    times = [(start + i) * (1 if i % 7 else 1_000_000) for i in range(records_each)]
    records = [Rec(at, b"k%d" % (i % 9), b"%064d" % i) for i, at in enumerate(times)]
    _write(address, topic, ((p, batch(records)) for p in range(partitions)))
    return PollutedTopic(topic, partitions * (records_each - bad), {"nanoseconds": partitions * bad})


def sound_partitions(address: str, partitions: int, records_each: int) -> PollutedTopic:
    """Write valid records of 75 bytes in lz4 batches, the same in each partition, which both sources can read."""
    topic = create_topic(address, _UNLIMITED, partitions, prefix="sound")
    start = time.time_ns() // 1_000_000 - _HOUR_MS
    sizes = [min(_A_BATCH, records_each - at) for at in range(0, records_each, _A_BATCH)]

    def some(count: int) -> bytes:
        return batch([Rec(start + i, b"k%d" % (i % 9), b"%064d" % i) for i in range(count)], LZ4)

    made = {size: some(size) for size in set(sizes)}
    _write(address, topic, ((partition, made[size]) for size in sizes for partition in range(partitions)))
    return PollutedTopic(topic, partitions * records_each, {})


def many_producers(address: str, partitions: int, producers: int, records_each: int) -> PollutedTopic:
    """Write records of many producers with separate ids. Every second producer also writes timestamps of 0."""
    topic = create_topic(address, _UNLIMITED, partitions, prefix="producers")
    start = time.time_ns() // 1_000_000 - _HOUR_MS

    def of(producer: int) -> bytes:
        times = [start + producer * 10 + i for i in range(records_each)]
        if producer % 2:
            times[-1] = 0
        records = [Rec(at, b"k", b"%064d" % i) for i, at in enumerate(times)]
        return batch(records, producer_id=1_000_000 + producer, producer_epoch=0, base_sequence=0)

    _write(address, topic, ((producer % partitions, of(producer)) for producer in range(producers)))
    bad = producers // 2
    return PollutedTopic(topic, producers * records_each - bad, {"zero": bad})


def _write(address: str, topic: str, batches: Iterable[tuple[int, bytes]]) -> None:
    """Write the batches in order. Raises RuntimeError if the broker rejects one."""
    with RawClient(address, timeout=60) as client:
        for some in _requests(batches):
            answer = client.produce(9, [topic_data(topic, *some.items())])
            if isinstance(answer, str):
                raise RuntimeError(f"the broker did not answer what was written to {topic}: {answer}")
            codes = {p["error_code"] for p in answer["responses"][0]["partition_responses"]}
            if codes != {0}:
                raise RuntimeError(f"the broker rejected what was written to {topic}: {codes}")


def _requests(batches: Iterable[tuple[int, bytes]]) -> Iterator[dict[int, bytes]]:
    """Yield requests with one batch per partition."""
    some: dict[int, bytes] = {}
    for partition, data in batches:
        if partition in some or len(some) == _A_REQUEST:
            yield some
            some = {}
        some[partition] = data
    if some:
        yield some
