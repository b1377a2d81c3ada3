"""Builds batches for Kafka's LogValidator: good, bad and damaged batches, each with its topic's policy."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from sluicegate.protocol.integers import LONG_MAX
from sluicegate.validation.policy import Framing, TimestampType, TopicPolicy
from tests.wire.batches import CODECS, GZIP, NONE, XERIAL, ZSTD, Rec, batch, compress, record

NOW = 1_800_000_000_123
_OPEN = TopicPolicy(framing=Framing.BROKER)
DAY, HOUR = 86_400_000, 3_600_000
LONG_MIN = -(2**63)
BOUNDS = (0, 1, 1000, HOUR, DAY, NOW, LONG_MAX - 1, LONG_MAX)
LOG_APPEND_TIME_FLAG, CONTROL_FLAG = 0x08, 0x20


@dataclass(frozen=True)
class Case:
    policy: TopicPolicy
    data: bytes

    def case_line(self) -> str:
        p = self.policy
        compacted = str(p.compacted).lower()
        return f"{NOW} {p.timestamp_type.value} {p.before_max_ms} {p.after_max_ms} {compacted} {self.data.hex()}\n"


Cases = Callable[[random.Random, int], Iterator[Case]]
"""Generates the given number of cases."""


def random_policy(chance: random.Random) -> TopicPolicy:
    kind = chance.choices((TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME), (4, 1))[0]
    bounds = chance.choice(BOUNDS), chance.choice(BOUNDS)
    return TopicPolicy(kind, *bounds, chance.random() < 0.3, framing=Framing.BROKER)


def random_time(chance: random.Random, policy: TopicPolicy) -> int:
    edges = (NOW - policy.before_max_ms, NOW + policy.after_max_ms, NOW, 0, -1, LONG_MIN, LONG_MAX, NOW - 2**63)
    time = chance.choice(edges) + chance.choice((-1, 0, 0, 1))
    return chance.choice((time, NOW, NOW * 1000, NOW * 1_000_000)) if LONG_MIN <= time <= LONG_MAX else NOW


def random_record(chance: random.Random, policy: TopicPolicy) -> Rec:
    headers = [(b"h", chance.choice((None, b"x")))] * chance.choice((0, 0, 0, 2))
    key = chance.choice((b"k", b"k", b"", None))
    return Rec(random_time(chance, policy), key, chance.choice((b"v", b"", None)), headers)


def good_structures(chance: random.Random, count: int) -> Iterator[Case]:
    """Generate batches with good or bad timestamps and keys, some with false header fields."""
    for _ in range(count):
        policy = random_policy(chance)
        records = [random_record(chance, policy) for _ in range(chance.choice((1, 1, 2, 5, 20)))]
        changes: dict[str, int] = {}
        if chance.random() < 0.2:
            changes = {"flags": LOG_APPEND_TIME_FLAG, "max_timestamp": random_time(chance, policy)}
        elif chance.random() < 0.1:
            changes = chance.choice(
                (
                    {"max_timestamp": LONG_MAX},
                    {"base_timestamp": random_time(chance, policy)},
                    {"flags": CONTROL_FLAG},
                    {"count": len(records) + 1},
                    {"last_offset_delta": -1, "count": 0},
                    {"producer_id": 1},
                    {"producer_id": 1, "base_sequence": 0},
                    {"crc": 5},
                )
            )
        yield Case(policy, batch(records, chance.choice(list(CODECS.values())), **changes))


def damaged_payloads(chance: random.Random, count: int) -> Iterator[Case]:
    """Generate batches with damaged records (bytes changed, cut or added) and a correct CRC."""
    for _ in range(count):
        policy = random_policy(chance)
        records = [random_record(chance, policy) for _ in range(chance.choice((1, 2, 3)))]
        payload = bytearray(b"".join(record(r, i, NOW) for i, r in enumerate(records)))
        codec = chance.choice(list(CODECS.values()))
        for _ in range(chance.choice((1, 1, 2))):
            match chance.randrange(4):
                case 0:
                    payload[chance.randrange(len(payload))] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
                case 1:
                    payload = payload[: chance.randrange(1, len(payload) + 1)]
                case 2:
                    payload += chance.randbytes(chance.choice((1, 5)))
                case 3:
                    position = chance.randrange(len(payload))
                    payload[position:position] = chance.choice((b"\xff" * 5, b"\x80" * 10, b"\0"))
        data = compress(codec, bytes(payload))
        yield Case(policy, batch(records, codec, compressed=data, base_timestamp=NOW, max_timestamp=NOW))


def damaged_compression(chance: random.Random, count: int) -> Iterator[Case]:
    """Generate batches with a damaged payload and a correct CRC."""
    for _ in range(count):
        policy = random_policy(chance)
        records = [random_record(chance, policy) for _ in range(chance.choice((1, 5, 100)))]
        codec = chance.choice([codec for codec in CODECS.values() if codec not in (NONE, GZIP)])
        payload = b"".join(record(r, i, NOW) for i, r in enumerate(records))
        data = compress(codec, payload)
        cut = chance.randrange(len(data))
        data = chance.choice((data[:cut], data + chance.randbytes(3), data + data))
        yield Case(policy, batch(records, codec, compressed=data, base_timestamp=NOW, max_timestamp=NOW))


def damage_in_one_of_several_steps(chance: random.Random, count: int) -> Iterator[Case]:
    """Generate payloads of several decoder steps with damage at one place, and often a bad record before or after it.
    The bytes that Java's decoders still return decide which of the two errors a broker reports.
    """
    for _ in range(count):
        size, alike = chance.choice((5, 300, 5000)), chance.random() < 0.5
        records = [
            Rec(NOW, b"k", b"v" * size if alike else chance.randbytes(size)) for _ in range(400_000 // (size + 400))
        ]
        payload = bytearray(b"".join(record(r, i, NOW) for i, r in enumerate(records)))
        if chance.random() < 0.7:
            start = chance.randrange(len(payload))
            payload[start : start + 12] = b"\xff" * 12
        codec = chance.choice([codec for codec in CODECS.values() if codec != NONE])
        several = chance.random() < 0.3
        cut = chance.randrange(len(payload)) if several and codec in (GZIP, ZSTD) else len(payload)
        data = bytearray(
            compress(codec, bytes(payload[:cut])) + (compress(codec, bytes(payload[cut:])) if several else b"")
        )
        position = chance.randrange(len(data))
        match chance.randrange(4):
            case 0:
                data[position:] = b""
            case 1:
                data[position] ^= 1 << chance.randrange(8)
            case 2:
                data[position : position + 20] = chance.randbytes(20)
            case 3:
                data += chance.choice((b"\x1f\x8b", b"\0", chance.randbytes(30)))
        yield Case(_OPEN, batch(records, codec, compressed=bytes(data), base_timestamp=NOW, max_timestamp=NOW))


def mutated_compression(chance: random.Random, count: int) -> Iterator[Case]:
    """Generate batches with a few changed bytes in the payload and a correct CRC."""
    for _ in range(count):
        size, alike = chance.choice((1, 5, 30, 300, 3000)), chance.random() < 0.5
        records = [
            Rec(NOW, b"k%d" % i, b"v" * size if alike else chance.randbytes(size))
            for i in range(chance.choice((1, 3, 20, 100)))
        ]
        payload = b"".join(record(r, i, NOW) for i, r in enumerate(records))
        codec = chance.choice([codec for codec in CODECS.values() if codec != NONE])
        data = bytearray(compress(codec, payload))
        for _ in range(chance.choice((1, 1, 2, 3))):
            position = chance.randrange(len(data))
            match chance.randrange(3):
                case 0:
                    data[position] ^= 1 << chance.randrange(8)
                case 1:
                    data[position] = chance.randrange(256)
                case 2:
                    data[position : position + 2] = chance.randbytes(2)
        bent = batch(records, codec, compressed=bytes(data), base_timestamp=NOW, max_timestamp=NOW)
        yield Case(_OPEN, bent)


def further_streams(chance: random.Random, count: int) -> Iterator[Case]:
    """Return Snappy in Java's format: several streams in sequence, one of which may start with other bytes."""
    for _ in range(count):
        records = [Rec(NOW, b"k", b"v" * chance.choice((1, 30, 3000))) for _ in range(chance.choice((1, 3, 20)))]
        payload = b"".join(record(r, i, NOW) for i, r in enumerate(records))
        cuts = sorted({0, len(payload), *(chance.randrange(1, len(payload)) for _ in range(chance.choice((1, 3))))})
        streams = [bytearray(compress(XERIAL, payload[start:end])) for start, end in pairwise(cuts)]
        streams += [bytearray(compress(XERIAL, b"behind"))] * chance.choice((0, 0, 1))
        bent = chance.choice(streams[1:] or streams)
        bent[chance.randrange(4, 12)] ^= 1 << chance.randrange(8)
        data = b"".join(streams)
        yield Case(_OPEN, batch(records, XERIAL, compressed=data, base_timestamp=NOW, max_timestamp=NOW))
