"""`list`, `show` and `redrive` of dead letters beside plain loops of a consumer and a producer, in one run.

The plain consumer reads all parts of each record. The plain loop writes each record that it reads to another topic.
Rates are records per second of processor time of this process, because other processes may share the machine.

Run: python -m bench.dead_letters [--records N] [--rounds N] [--memory-records N]. Writes dead_letters.json in
bench/results and a table of docs/performance.md. Needs a broker: make kafka
"""

import argparse
import os
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.ending import end_on_sigterm
from bench.figures import PAGE, RESULTS, Figure, fill_in, goals_table, write_json
from bench.machine import resident_of
from bench.targets import broker
from sluicegate.dead_letters import (
    Cluster,
    LetterGroups,
    LetterValidator,
    RedriveJob,
    RedriveRequest,
    group_letters,
    letters_of,
)
from sluicegate.dead_letters.formats import read_letter
from sluicegate.dead_letters.survey import topics_with_letters
from sluicegate.dead_letters.verdicts import own_time
from sluicegate.validation.policy import TopicPolicy, ValidationLimits

_SECONDS = 60.0
_AT_ONCE = 1000
_PARTITIONS = 2
_FILE = RESULTS / "dead_letters.json"
_VALUE = b'{"order": 1, "customer": "8c1f3c0e", "lines": [{"sku": "A-17", "count": 2}], "currency": "EUR"}'
_CONNECT = "__connect.errors."
CONSUMER, LOOP = "plain consumer", "plain loop"
LIST, SHOW, REDRIVE = "list", "show", "redrive"

Rate = tuple[float, float]
"""Records per second of processor time, and per second."""


def letter_headers(original: str, offset: int) -> list[tuple[str, str | bytes | None]]:
    """Return the headers that Kafka Connect's sink writes, without a stack trace."""
    return [
        (f"{_CONNECT}topic", original.encode()),
        (f"{_CONNECT}partition", b"0"),
        (f"{_CONNECT}offset", b"%d" % offset),
        (f"{_CONNECT}connector.name", b"to-warehouse"),
        (f"{_CONNECT}task.id", b"0"),
        (f"{_CONNECT}stage", b"VALUE_CONVERTER"),
        (f"{_CONNECT}class.name", b"org.apache.kafka.connect.json.JsonConverter"),
        (f"{_CONNECT}exception.class.name", b"org.apache.kafka.connect.errors.DataException"),
        (
            f"{_CONNECT}exception.message",
            b"Converting byte[] to Kafka Connect data failed due to serialization error: ",
        ),
    ]


def create_topic(address: str, name: str, partitions: int = _PARTITIONS) -> str:
    """Create a topic with a name that begins with `name`, and return its name."""
    topic = f"{name}-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(_SECONDS)
    return topic


def write_letters(address: str, dead: str, original: str, count: int) -> None:
    """Write letters to all partitions of a topic."""
    producer = Producer({"bootstrap.servers": address, "compression.type": "lz4", "linger.ms": 20})
    for i in range(count):
        headers = letter_headers(original, i)
        while True:
            try:
                producer.produce(dead, _VALUE, b"%d" % (i % 1000), i % _PARTITIONS, headers=headers)
                break
            except BufferError:
                producer.poll(1)
        producer.poll(0)
    if producer.flush(_SECONDS):
        raise RuntimeError("some letters were not written")


def measure(work: Callable[[], int], records: int) -> Rate:
    """Return the rates of a function that returns the number of its records. Raises RuntimeError for another number."""
    began, used = time.perf_counter(), time.process_time()
    if work() != records:
        raise RuntimeError("some records were lost")
    return records / (time.process_time() - used), records / (time.perf_counter() - began)


def plain_records(address: str, topic: str) -> Iterator[tuple[Any, ...]]:
    """Yield all parts of each record that a topic has."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "plain", "enable.auto.commit": False})
    try:
        left = 0
        for partition in range(_PARTITIONS):
            start, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), _SECONDS)
            left += end - start
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(_PARTITIONS)])
        while left:
            for message in consumer.consume(_AT_ONCE, 1):
                error = message.error()
                if error is not None:
                    raise RuntimeError(error.str())
                left -= 1
                yield (
                    message.topic(),
                    message.partition(),
                    message.offset(),
                    message.timestamp(),
                    message.key(),
                    message.value(),
                    message.headers(),
                )
    finally:
        consumer.close()


def read_plainly(address: str, topic: str) -> int:
    """Read a topic, and return the number of its records."""
    return sum(1 for _ in plain_records(address, topic))


def plain_loop(address: str, topic: str, target: str) -> int:
    """Copy a topic to another one, and return the number of its records."""
    failed: list[object] = []
    written = 0
    producer = Producer(
        {"bootstrap.servers": address, "compression.type": "lz4", "linger.ms": 20, "enable.idempotence": True}
    )

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            failed.append(error)

    for _, _, _, (_, timestamp), key, value, headers in plain_records(address, topic):
        while True:
            try:
                producer.produce(target, value, key, 0, delivered, timestamp=timestamp, headers=headers)
                break
            except BufferError:
                producer.poll(1)
        producer.poll(0)
        written += 1
    if producer.flush(_SECONDS) or failed:
        raise RuntimeError("some records were not written")
    return written


def show(cluster: Cluster, topic: str) -> int:
    """Group the letters of a topic, and return their number."""
    return sum(group.count for group in group_letters(letters_of(cluster, topic)))


def survey(cluster: Cluster, topic: str, records: int) -> int:
    """Look at all records of a topic as `list` does, and return the number of letters."""
    (found,) = topics_with_letters(cluster, {topic: _PARTITIONS}, records, read_letter)
    return len(found.letters)


def redrive_job(cluster: Cluster, topic: str) -> RedriveJob:
    """Return a job that redrives a topic with new marks, by a policy without bounds or rules."""
    validator = LetterValidator(lambda _: TopicPolicy(), ValidationLimits(), time.time_ns() // 1_000_000, own_time)
    return RedriveJob(cluster, RedriveRequest(topic, marks=f"marks-{uuid.uuid4().hex[:8]}"), validator)


def redrive(job: RedriveJob, digest: str) -> int:
    """Apply a plan, and return the number of written records."""
    return job.apply(digest, "bench").written


def compared(address: str, records: int, rounds: int) -> dict[str, list[Rate]]:
    """Measure each kind of work once a round, and return its rates."""
    cluster = Cluster({"bootstrap.servers": address})
    original, dead = create_topic(address, "orders"), create_topic(address, "dead")
    write_letters(address, dead, original, records)
    found: dict[str, list[Rate]] = {}
    for _ in range(rounds):
        target, job = create_topic(address, "copies"), redrive_job(cluster, dead)
        digest = job.plan().digest
        works: dict[str, Callable[[], int]] = {
            CONSUMER: partial(read_plainly, address, dead),
            LIST: partial(survey, cluster, dead, records),
            SHOW: partial(show, cluster, dead),
            LOOP: partial(plain_loop, address, dead, target),
            REDRIVE: partial(redrive, job, digest),
        }
        for name, work in works.items():
            rates = measure(work, records)
            found.setdefault(name, []).append(rates)
            print(f"{name}: {rates[0]:,.0f} a CPU second, {rates[1]:,.0f} a second", flush=True)
    return found


def memory_growth(address: str, records: int) -> float:
    """Group letters as `show` does, and return by how many MB the memory grows in their second half."""
    cluster = Cluster({"bootstrap.servers": address})
    dead = create_topic(address, "dead")
    write_letters(address, dead, create_topic(address, "orders"), records)
    groups = LetterGroups()
    sizes = []
    for number, letter in enumerate(letters_of(cluster, dead), 1):
        groups.add(letter)
        if number % (records // 20) == 0 and number >= records // 2:
            sizes.append(resident_of(os.getpid()) / 1e6)
    return max(sizes) - sizes[0]


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory-records", type=int, default=10_000_000)
    parser.add_argument("--dry-run", action="store_true", help="write no results")
    options = parser.parse_args()
    end_on_sigterm()
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as (address, _, _):
        growth = memory_growth(address, options.memory_records)
        found = compared(address, options.records, options.rounds)
    figures = [
        Figure("memory of show, growth in the second half", f"{options.memory_records:,} letters", growth, "MB", 16),
        _ratio(found, LIST, CONSUMER, 0.7),
        _ratio(found, SHOW, CONSUMER, 0.7),
        _ratio(found, REDRIVE, LOOP, 0.5),
    ]
    print(goals_table(figures))
    if not options.dry_run:
        write_json(_FILE, figures)
        fill_in(PAGE, "dead-letters", goals_table(figures))


def _ratio(found: dict[str, list[Rate]], work: str, plain: str, goal: float) -> Figure:
    ratios = [one[0] / other[0] for one, other in zip(found[work], found[plain], strict=True)]
    return Figure(f"{work} / {plain}", "letters of Kafka Connect", statistics.median(ratios), "", goal, True)


if __name__ == "__main__":
    main()
