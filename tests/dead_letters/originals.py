"""Defines records at which writers of dead letters fail, and the letters that they should write."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import Producer

from sluicegate.dead_letters import Headers, Letter, LetterFormat, Obstacle, StoredRecord, read_letter
from sluicegate.dead_letters.cluster import Cluster, ranges_of
from sluicegate.dead_letters.reading import read_records
from tests.broker.eventually import eventually
from tests.dead_letters.desk import SECONDS

PARTITIONS = 3
TIME = 1_764_000_000_000
HEADERS: tuple[Headers, ...] = (
    (),
    ((b"trace", b"7"), (b"trace", None), (b"trace", b"8")),
    (("grün".encode(), b"\xff\0"),),
    ((b"", b""),),
)
Place = tuple[int, int]
"""A partition and an offset."""


class Original(NamedTuple):
    """A record of the original topic. `timestamp` is in ms."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True)
class Error:
    """The error as the writer itself reports it to its program."""

    name: str
    text: str
    stage: str | None = None
    attempts: int | None = None
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fields:
    """All fields of a letter."""

    topic: str
    partition: int | None
    offset: int | None
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers
    error: Error
    client: str | None
    obstacle: Obstacle | None = None


def write_originals(bootstrap: str, topic: str, records: Iterable[Original]) -> dict[Place, Original]:
    """Write records to the partitions of a topic in turn, and return them by their places."""
    written: dict[Place, Original] = {}
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "enable.idempotence": True})
    for i, record in enumerate(records):

        def keep(error: object, message: object, record: Original = record) -> None:
            assert error is None, error
            written[message.partition(), message.offset()] = record  # type: ignore[attr-defined]

        headers = [(name.decode(), value) for name, value in record.headers]
        producer.produce(
            topic, record.value, record.key, i % PARTITIONS, keep, timestamp=record.timestamp, headers=headers
        )
        producer.poll(0)
    assert producer.flush(SECONDS) == 0
    return written


def expected_letters(
    topic: str, originals: Mapping[Place, Original], errors: Mapping[Place, Error], client: str | None
) -> list[Fields]:
    """Return the expected letters of the records with errors, in the order of their places."""
    return [Fields(topic, *place, *originals[place], errors[place], client) for place in sorted(errors)]


def letters_of(bootstrap: str, topic: str, count: int, format: LetterFormat) -> list[Fields]:
    """Wait until a topic has `count` records, and return all fields of its letters in the order of their origins."""
    records = _stored_records(bootstrap, topic, count)
    letters = [letter for record in records if (letter := read_letter(record)) is not None]
    assert Counter(letter.format for letter in letters) == {format: count}
    assert len(records) == count
    return sorted(map(_fields, letters), key=lambda each: (each.partition or 0, each.offset or 0))


def _stored_records(bootstrap: str, topic: str, count: int) -> list[StoredRecord]:
    consumer = Cluster({"bootstrap.servers": bootstrap}).consumer()
    try:
        partitions = len(consumer.list_topics(topic, SECONDS).topics[topic].partitions)

        def stored() -> int:
            return sum(each.end - each.start for each in ranges_of(consumer, topic, partitions))

        eventually(lambda: stored() >= count, SECONDS, f"{count} letters in {topic}")
        return list(read_records(consumer, topic, ranges_of(consumer, topic, partitions)))
    finally:
        consumer.close()


def _fields(letter: Letter) -> Fields:
    record = letter.record
    return Fields(
        letter.topic,
        letter.partition,
        letter.offset,
        letter.timestamp,
        record.key,
        record.value,
        letter.headers,
        Error(letter.error, letter.text, letter.stage, letter.attempts, letter.rules),
        letter.client,
        letter.obstacle,
    )
