"""Writes topics that contain good records, and known invalid timestamps from known producers."""

from dataclasses import dataclass, field

from tests.integration.topics import create_topic
from tests.wire.batches import LZ4, NONE, ZSTD, Rec, batch
from tests.wire.raw_client import RawClient, topic_data

# Allow any timestamp, as brokers before 4.0 do by default. Retention would soon delete old and zero timestamps.
UNLIMITED = {
    "message.timestamp.after.max.ms": str(2**63 - 1),
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "retention.ms": "-1",
}
HOUR, DAY = 3_600_000, 86_400_000
RECORDS = 40
PRODUCERS = {"good": 7000, "seconds": 7001, "microseconds": 7002, "nanoseconds": 7003, "zero": -1, "future": 7005}
CODECS = {"good": LZ4, "seconds": NONE, "microseconds": ZSTD, "nanoseconds": LZ4, "zero": NONE, "future": LZ4}
DAMAGES = ("seconds", "microseconds", "nanoseconds", "zero", "future")


def wrong_timestamp(damage: str, time: int) -> int:
    """Return the timestamp that a producer with this mistake writes for a time (ms)."""
    match damage:
        case "seconds":
            return time // 1000
        case "microseconds":
            return time * 1000 + 7
        case "nanoseconds":
            return time * 1_000_000 + 7
        case "zero":
            return 0
        case "future":
            return time + 2 * DAY
    return time


@dataclass
class PollutedTopic:
    """The records that were written."""

    topic: str
    counts: dict[str, int] = field(default_factory=dict)
    written: list[tuple[int, int, int]] = field(default_factory=list)  # partition, true time, written time

    @property
    def records(self) -> int:
        return len(self.written)


class Polluter:
    """Writes the batches of one partition after the other; each producer has its own sequence."""

    def __init__(self, bootstrap: str, now_ms: int, partitions: int = 3) -> None:
        self._address = bootstrap.split(",", maxsplit=1)[0]
        self._partitions = partitions
        self._now = now_ms
        self._sequences: dict[tuple[int, int], int] = {}
        self.found = PollutedTopic(create_topic(bootstrap, UNLIMITED, partitions))

    def write(self, batches: int, span_ms: int, every: int = 10) -> PollutedTopic:
        """Write `batches` good batches to each partition, from the time span before now; one in `every` is followed by
        a damaged one."""
        with RawClient(self._address) as client:
            for partition in range(self._partitions):
                for i in range(batches):
                    time = self._now - span_ms + span_ms * i // batches
                    self._send(client, partition, "good", time)
                    if i % every == every // 2:
                        self._send(client, partition, DAMAGES[i // every % len(DAMAGES)], time)
        return self.found

    def _send(self, client: RawClient, partition: int, damage: str, time: int) -> None:
        producer = PRODUCERS[damage]
        times = [time + i for i in range(RECORDS)]
        written = [wrong_timestamp(damage, t) for t in times]
        records = [
            Rec(
                t,
                None if i % 8 == 0 else b"key-%d" % (i % 5),
                b"%s %d" % (damage.encode(), i),
                [(b"h", b"1")] * (i % 2),
            )
            for i, t in enumerate(written)
        ]
        sequence = self._sequences.get((producer, partition), 0)
        numbered = {} if producer < 0 else {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
        data = batch(records, CODECS[damage], **numbered)
        answer = client.produce(9, [topic_data(self.found.topic, (partition, data))])
        assert isinstance(answer, dict)
        assert answer["responses"][0]["partition_responses"][0]["error_code"] == 0, answer
        self._sequences[producer, partition] = sequence + RECORDS
        self.found.written += [(partition, t, w) for t, w in zip(times, written, strict=True)]
        if damage != "good":
            self.found.counts[damage] = self.found.counts.get(damage, 0) + RECORDS
