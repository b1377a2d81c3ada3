"""Runs a broker with a compacted topic whose log cleaner has emptied batches of data and transaction markers.

The broker runs its log cleaner every few milliseconds. The tests read the results from the log's files.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.integration.java import java_tool

QUICK_CLEANER = {"log.cleaner.backoff.ms": "20", "log.segment.delete.delay.ms": "100"}
SETTINGS = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "0.0001",
    "delete.retention.ms": "0",
    "message.timestamp.after.max.ms": str(2**63 - 1),
}
_FILLER_BYTES = 1_047_000  # together with earlier records this exceeds a segment, so that a new segment begins
_HEADER = struct.Struct(">qiibIhiqqqhii")
_CONTROL = 0x20
_SECONDS = 120


@dataclass(frozen=True)
class BatchHeader:
    """The header of a batch in a log file, as Kafka documents it."""

    base_offset: int
    size: int
    is_control: bool
    producer_id: int
    records: int


def headers_in(kafka: Kafka, topic: str, partition: int = 0) -> list[BatchHeader]:
    """Return the headers of all batches in the partition's segments, in the order of their offsets."""
    folder = kafka.folder / "data-1" / f"{topic}-{partition}"
    return [header for file in sorted(folder.glob("*.log")) for header in _headers_of(file)]


def _headers_of(file: Path) -> Iterator[BatchHeader]:
    try:
        data = file.read_bytes()
    except FileNotFoundError:  # the cleaner has just replaced the file
        return
    at = 0
    while at + _HEADER.size <= len(data):
        base, length, _, _, _, attributes, *_, producer_id, _, _, records = _HEADER.unpack_from(data, at)
        yield BatchHeader(base, length + 12, bool(attributes & _CONTROL), producer_id, records)
        at += 12 + length


class TransactionEnd(Enum):
    """How a transaction ends."""

    COMMIT = auto()
    ABORT = auto()
    FENCED = auto()


class CleanedTopic:
    """A topic of one partition. `overwrite` and `transaction` write single records; `clean` waits for the log
    cleaner."""

    def __init__(self, kafka: Kafka, name: str) -> None:
        self.kafka, self.name = kafka, name
        self._plain = Producer({"bootstrap.servers": kafka.bootstrap, "message.max.bytes": 2_000_000})
        self._fillers = 0
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        admin.create_topics([NewTopic(name, 1, 1, config=SETTINGS)])[name].result(30)

    def transaction(self, number: int, key: str, value: str, end: TransactionEnd) -> None:
        """Write one record in a transaction of producer `number`, and end the transaction. If the producer is fenced,
        the marker that ends the transaction has another epoch than its records.
        """
        producer = self._producer(number)
        producer.begin_transaction()
        producer.produce(self.name, value, key, partition=0)
        assert producer.flush(_SECONDS) == 0
        if end is TransactionEnd.COMMIT:
            producer.commit_transaction(_SECONDS)
        elif end is TransactionEnd.ABORT:
            producer.abort_transaction(_SECONDS)
        else:
            self._producer(number)

    def java_transaction(self, value: str) -> None:
        """Write one record with Kafka's own producer, in a transaction, which has a new epoch on Kafka 4 (KIP-890)."""
        program = str(Path(__file__).parent.parent / "integration" / "JavaProducer.java")
        said = java_tool(program, self.kafka.bootstrap, self.name, "none", "transactional", "0", stdin=f"7 {value}\n")
        assert said == "ok\n"

    def _producer(self, number: int) -> Producer:
        settings = {"bootstrap.servers": self.kafka.bootstrap, "transactional.id": f"{self.name}-{number}"}
        producer = Producer(settings)
        producer.init_transactions(_SECONDS)
        return producer

    def write_plain(self, key: str, value: str, **more: int) -> None:
        """Write one record without a transaction."""
        self._plain.produce(self.name, value, key, partition=0, **more)
        assert self._plain.flush(_SECONDS) == 0

    def wait_for_cleaner(self) -> None:
        """Begin new segments, and wait until the log cleaner has cleaned the earlier ones. Then only two fillers are
        left: that of the active segment and the one before it.
        """
        for _ in range(3):
            self._fill()
        eventually(
            lambda: sum(each.size > _FILLER_BYTES for each in headers_in(self.kafka, self.name)) == 2,
            _SECONDS,
            f"the cleaner to have gone over {self.name}",
        )

    def _fill(self) -> None:
        self._fillers += 1
        self.write_plain("filler", f"{self._fillers}".ljust(_FILLER_BYTES))


def records_java_reads(kafka: Kafka, topic: str) -> list[tuple[str, str]]:
    """Return key and value of each record that Kafka's own consumer reads (read_committed), without the filler."""
    tool = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    arguments = ("--bootstrap-server", kafka.bootstrap, "--topic", topic, "--from-beginning", "--timeout-ms", "8000")
    shown = ("--property", "print.key=true", "--isolation-level", "read_committed")
    lines = java_tool(tool, *arguments, *shown, version=kafka.version).splitlines()
    records = (line.split("\t") for line in lines if "\t" in line)
    return [(key, value) for key, value in records if key != "filler"]
