"""Builds sets of messages of magic 0 and 1, as old producers send them, and as no producer should send them."""

import random
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple
from zlib import crc32

from tests.wire.batches import GZIP, LZ4, NONE, SNAPPY, XERIAL, ZSTD, batch, compress, message, wrapper
from tests.wire.batches import Rec as Record

HOUR = 3_600_000
_CODECS = {"plain": NONE, "gzip": GZIP, "snappy": SNAPPY, "xerial": XERIAL, "lz4": LZ4}
_LOG_APPEND_TIME = 0x08
LEGACY_TOPICS: dict[str, dict[str, str]] = {
    "open": {},
    "bounded": {"message.timestamp.before.max.ms": str(HOUR), "message.timestamp.after.max.ms": str(HOUR)},
    "append-time": {"message.timestamp.type": "LogAppendTime"},
    "compacted": {"cleanup.policy": "compact"},
    "small": {"max.message.bytes": "1000"},
    **{f"to-{codec}": {"compression.type": codec} for codec in ("gzip", "snappy", "lz4", "zstd", "uncompressed")},
}


class LegacyCase(NamedTuple):
    """One partition's records for a kind of topic, in one version of Produce."""

    name: str
    kind: str
    version: int
    records: bytes
    acks: int = -1


Build = Callable[[int, int], bytes]
"""Returns the records for a magic and the current time."""


def _messages(magic: int, times: list[int], offsets: list[int] | None = None) -> list[bytes]:
    """Return messages with null, empty and other keys and values."""
    keys, values = (None, b"key", b""), (b"value" * 9, None, b"")
    return [
        message(magic, values[i % 3], key=keys[i % 3], timestamp=time, offset=offsets[i] if offsets else i)
        for i, time in enumerate(times)
    ]


def _with_wrong_checksum(compressed: bytes) -> bytes:
    """Return an LZ4 frame with the header checksum of old clients (KAFKA-3160), which is not the standard's."""
    return compressed[:6] + bytes([compressed[6] ^ 0x5A]) + compressed[7:]


def _with_size(whole: bytes, at: int, delta: int) -> bytes:
    """Return a message with another size of its key or value, and the right CRC."""
    changed = bytearray(whole)
    struct.pack_into(">i", changed, at, struct.unpack_from(">i", whole, at)[0] + delta)
    struct.pack_into(">I", changed, 12, crc32(changed[16:]))
    return bytes(changed)


def stored(now: int) -> Iterator[LegacyCase]:
    """Yield sets that a broker of 3.9 stores, with each codec, for each kind of topic."""
    times = {"ascending": [now - 2, now - 1, now], "descending": [now, now - 9], "none first": [-1, now]}
    for magic in (0, 1):
        for codec_name, codec in _CODECS.items():
            for place, kind in enumerate(("open", "bounded", "append-time", *list(LEGACY_TOPICS)[5:])):
                name = list(times)[(place + magic) % len(times)]
                inner = _messages(magic, times[name])
                records = wrapper(magic, inner, codec, timestamp=now) if codec else b"".join(inner)
                yield LegacyCase(f"magic {magic}, {codec_name}, {name}", kind, 1 + magic, records)


_WRAPPED: dict[str, Build] = {
    "absolute inner offsets": lambda m, now: wrapper(m, _messages(m, [now] * 3, [100, 101, 102]), GZIP, offset=102),
    "a wrapper offset of 0, as librdkafka's": lambda m, now: wrapper(m, _messages(m, [now] * 3), GZIP, offset=0),
    "inner offsets of 0": lambda m, now: wrapper(m, _messages(m, [now] * 3, [0] * 3), GZIP, offset=0),
    "gaps": lambda m, now: wrapper(m, _messages(m, [now] * 3, [0, 5, 7]), GZIP, offset=7),
    "a wrapper offset below the last": lambda m, now: wrapper(m, _messages(m, [now] * 3, [0, 5, 7]), GZIP, offset=3),
    "a wrong LZ4 header checksum": lambda m, now: message(
        m, _with_wrong_checksum(compress(LZ4, b"".join(_messages(m, [now])))), key=None, codec=LZ4, timestamp=now
    ),
    "a cut inner message": lambda m, now: message(
        m, compress(GZIP, b"".join(_messages(m, [now] * 3))[:-5]), key=None, codec=GZIP, timestamp=now, offset=2
    ),
    "a cut payload": lambda m, now: message(
        m, compress(GZIP, b"".join(_messages(m, [now] * 3)))[:-9], key=None, codec=GZIP, timestamp=now, offset=2
    ),
    "a key": lambda m, now: message(m, compress(GZIP, message(m, b"v", timestamp=now)), codec=GZIP, timestamp=now),
    "a wrong CRC": lambda m, now: message(m, compress(GZIP, message(m, b"v")), key=None, codec=GZIP, crc=5),
    "a wrong inner CRC": lambda m, now: wrapper(m, [message(m, b"v", timestamp=now, crc=7)], GZIP, timestamp=now),
    "a claim of append time": lambda m, now: wrapper(
        m, _messages(m, [now - 9, now - 5]), GZIP, timestamp=now, flags=_LOG_APPEND_TIME
    ),
    "inner claims of append time": lambda m, now: wrapper(
        m, [message(m, b"v", timestamp=now, flags=_LOG_APPEND_TIME)], GZIP, timestamp=now
    ),
    "a second wrapper": lambda m, now: wrapper(m, _messages(m, [now]), GZIP, timestamp=now) * 2,
    "a plain message after it": lambda m, now: wrapper(m, _messages(m, [now]), GZIP) + message(m, b"v"),
    "half a message after it": lambda m, now: wrapper(m, _messages(m, [now]), GZIP) + message(m, b"v")[:20],
    "another wrapper in it": lambda m, now: wrapper(m, [wrapper(m, _messages(m, [now]), GZIP)], GZIP),
    "another magic in it": lambda m, now: wrapper(m, _messages(1 - m, [now, now]), GZIP),
    "no message in it": lambda m, now: wrapper(m, [], GZIP, offset=0),
    "a null value": lambda m, now: message(m, None, key=None, codec=GZIP),
    "zstd": lambda m, now: wrapper(m, _messages(m, [now]), ZSTD),
    "a negative time": lambda m, now: wrapper(m, _messages(m, [now, -5]), GZIP),
}
_PLAIN: dict[str, Build] = {
    "a claim of append time": lambda m, now: message(m, b"v", timestamp=now, flags=_LOG_APPEND_TIME),
    "a claim of append time without a time": lambda m, now: message(m, b"v", flags=_LOG_APPEND_TIME),
    "a negative time": lambda m, now: message(m, b"v", timestamp=-7),
    "nothing": lambda m, now: b"",
    "half a message": lambda m, now: message(m, b"v", timestamp=now)[:-1],
    "a message and a half": lambda m, now: message(m, b"v", timestamp=now) + message(m, b"w")[:-1],
    "equal offsets": lambda m, now: message(m, b"v", timestamp=now) * 3,
    "a second message with a wrong CRC": lambda m, now: message(m, b"v", timestamp=now) + message(m, b"w", crc=9),
    "a null key": lambda m, now: message(m, b"v", timestamp=now) + message(m, b"w", key=None, timestamp=now),
    "a message of 2000 bytes": lambda m, now: message(m, bytes(2000), timestamp=now),
    "many messages of 100 bytes": lambda m, now: message(m, bytes(100), timestamp=now) * 12,
    "a time of 1970": lambda m, now: message(m, b"v", timestamp=1),
    "a time in microseconds": lambda m, now: message(m, b"v", timestamp=now * 1000),
    "two magics": lambda m, now: message(m, b"v", timestamp=now) + message(1 - m, b"v", timestamp=now),
    "a size of 13": lambda m, now: message(m, b"v")[:8] + struct.pack(">i", 13) + message(m, b"v")[12:],
    "a negative size": lambda m, now: message(m, b"v")[:8] + struct.pack(">i", -4) + message(m, b"v")[12:],
    "a magic of 3": lambda m, now: message(m, b"v")[:16] + b"\3" + message(m, b"v")[17:],
    "a value over its end": lambda m, now: _with_size(message(m, b"v", timestamp=now), 18 + 8 * m + 5, 4),
    "a key over its end": lambda m, now: _with_size(message(m, b"v", timestamp=now), 18 + 8 * m, 4),
    "a short value": lambda m, now: _with_size(message(m, b"v", timestamp=now), 18 + 8 * m + 5, -1),
    "unknown attributes": lambda m, now: message(m, b"v", timestamp=now, flags=0x70),
    "codec 7": lambda m, now: message(m, b"v", timestamp=now, codec=7),
    "300 messages": lambda m, now: b"".join(message(m, b"%d" % i, timestamp=now + i) for i in range(300)),
    "a batch of magic 2": lambda m, now: batch([Record(now)]),
}


def unusual(now: int, is_thorough: bool) -> Iterator[LegacyCase]:
    """Yield sets with one odd part. If `is_thorough`, each is sent to every kind of topic."""
    kinds = ("open", "bounded", "append-time", "compacted", "small")
    for what, cases in (("a wrapper with", _WRAPPED), ("plain:", _PLAIN)):
        for place, (name, build) in enumerate(cases.items()):
            usual = "compacted" if "key" in name else "small" if "bytes" in name else kinds[place % 3]
            for magic in (0, 1):
                for kind in kinds if is_thorough else (usual,):
                    records = build(magic, now)
                    yield LegacyCase(f"{what} {name}, magic {magic}", kind, (place + magic) % 3, records)
    yield LegacyCase("acks 1", "open", 2, message(1, b"v", timestamp=now), acks=1)
    yield LegacyCase("acks 2", "open", 2, message(1, b"v", timestamp=now), acks=2)
    yield LegacyCase("acks 0", "open", 2, message(1, b"v", timestamp=now), acks=0)
    yield LegacyCase("acks 0 and a wrong CRC", "open", 2, message(1, b"v", timestamp=now, crc=1), acks=0)


def random_sets(now: int, count: int, seed: int) -> Iterator[LegacyCase]:
    """Yield random sets, a tenth of them cut, and a tenth with a changed bit."""
    chance = random.Random(seed)

    def random_message(magic: int, offset: int) -> bytes:
        time = now - chance.randrange(10**5) if chance.random() < 0.9 else chance.choice((-1, 0, -9, 2**62))
        key, value = (chance.choice((None, b"", chance.randbytes(chance.randrange(1, 300)))) for _ in range(2))
        flags = _LOG_APPEND_TIME if chance.random() < 0.03 else 0
        return message(magic, value, key=key, timestamp=time, offset=offset, flags=flags)

    for number in range(count):
        magic, codec = chance.choice((0, 1)), chance.choice((NONE, NONE, GZIP, SNAPPY, XERIAL, LZ4))
        inner = [random_message(magic, offset) for offset in range(chance.choice((1, 2, 5, 40)))]
        records = b"".join(inner) if codec == NONE else wrapper(magic, inner, codec, timestamp=now)
        if chance.random() < 0.1:
            records = records[: -chance.randrange(1, 30)]
        if chance.random() < 0.1 and records:
            at = chance.randrange(len(records))
            records = records[:at] + bytes([records[at] ^ 1 << chance.randrange(8)]) + records[at + 1 :]
        kind = chance.choice(list(LEGACY_TOPICS))
        yield LegacyCase(f"random set {number} of seed {seed}", kind, chance.choice((0, 1, 2)), records)
